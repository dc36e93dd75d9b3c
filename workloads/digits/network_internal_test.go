package digits

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The reference computes in double precision, one image and one number at a time, and shares no
// code with the layers.

func referenceLoss(params []float64, set imageSet) float64 {
	loss := 0.0
	for i := range set.len() {
		values := make([]float64, pixelCount)
		for k, v := range set.image(i) {
			values[k] = float64(v)
		}
		values, rest := referenceDense(params, values, hidden.out)
		for k := range values {
			values[k] = math.Max(values[k], 0)
		}
		values, _ = referenceDense(rest, values, classCount)
		total := 0.0
		for _, v := range values {
			total += math.Exp(v)
		}
		loss -= math.Log(math.Exp(values[set.labels[i]]) / total)
	}
	return loss / float64(set.len())
}

func referenceDense(params, in []float64, outputs int) (out, rest []float64) {
	biases := params[outputs*len(in):]
	for j := range outputs {
		sum := biases[j]
		for k, v := range in {
			sum += v * params[j*len(in)+k]
		}
		out = append(out, sum)
	}
	return out, biases[outputs:]
}

func TestNetwork_GradientMatchesFiniteDifferences(t *testing.T) {
	training, _ := mustLoad(t)
	set := training.slice(0, 7) // a block of four images, and three alone
	random := rand.New(rand.NewPCG(7, 7))
	params := make([]float32, parameterCount)
	hidden.initialise(params, random)
	output.initialise(params[hidden.parameters():], random)
	double := make([]float64, len(params))
	for k := range params {
		params[k] += float32(0.05 * random.NormFloat64()) // biases too
		double[k] = float64(params[k])
	}
	gradient := make([]float32, len(params))
	s := newSpace(set.len())
	copy(s.pixels, set.pixels)
	scores := s.forward(params, set.len())
	sum := crossEntropy(s.scoreDelta, scores, set.labels, 1/float64(set.len()))
	s.backward(params, gradient, set.len())

	loss := sum / float64(set.len())
	if want := referenceLoss(double, set); math.Abs(loss-want) > 1e-5*want {
		t.Errorf("loss = %g, want %g", loss, want)
	}
	for _, k := range checked(random) {
		const step = 1e-6
		was := double[k]
		double[k] = was + step
		more := referenceLoss(double, set)
		double[k] = was - step
		less := referenceLoss(double, set)
		double[k] = was
		want := (more - less) / (2 * step)
		if got := float64(gradient[k]); math.Abs(got-want) > 1e-5+1e-3*math.Abs(want) {
			t.Errorf("parameter %d of %d: derivative = %g, want %g", k, len(params), got, want)
		}
	}
}

// checked returns the parameters of both layers that the test checks: the first and the last, the
// last weights and biases, and some random ones.
func checked(random *rand.Rand) []int {
	var at []int
	for _, layer := range [][2]int{{0, hidden.parameters()}, {hidden.parameters(), parameterCount}} {
		first, last := layer[0], layer[1]
		at = append(at, first, last-1, last-2, last-classCount)
		for range 80 {
			at = append(at, first+random.IntN(last-first))
		}
	}
	return at
}

func TestProducts_MatchTheirDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(count int) []float32 {
		list := make([]float32, count)
		for k := range list {
			list[k] = float32(random.IntN(5) - 2) // small integers, many zeros: sums are exact
		}
		return list
	}
	for images := 1; images <= 9; images++ {
		for _, inputs := range []int{1, 3, 8} {
			for outputs := 1; outputs <= 6; outputs++ {
				in, weights := draw(images*inputs), draw(outputs*inputs)
				bias, delta := draw(outputs), draw(images*outputs)
				forward := make([]float32, images*outputs)
				affine(forward, in, weights, bias, images, inputs, outputs)
				gradient, before := draw(outputs*inputs), make([]float32, outputs*inputs)
				copy(before, gradient)
				addOuter(gradient, delta, in, images, inputs, outputs)
				back := draw(images * inputs)
				multiply(back, delta, weights, images, inputs, outputs)

				wantForward, wantBack := make([]float32, len(forward)), make([]float32, len(back))
				for i := range images {
					for j := range outputs {
						wantForward[i*outputs+j] = bias[j]
						for k := range inputs {
							wantForward[i*outputs+j] += in[i*inputs+k] * weights[j*inputs+k]
							before[j*inputs+k] += delta[i*outputs+j] * in[i*inputs+k]
							wantBack[i*inputs+k] += delta[i*outputs+j] * weights[j*inputs+k]
						}
					}
				}
				wantEqual(t, "affine", images, inputs, outputs, forward, wantForward)
				wantEqual(t, "addOuter", images, inputs, outputs, gradient, before)
				wantEqual(t, "multiply", images, inputs, outputs, back, wantBack)
			}
		}
	}
}

func wantEqual(t *testing.T, what string, images, inputs, outputs int, got, want []float32) {
	t.Helper()
	for k := range want {
		if got[k] != want[k] {
			t.Fatalf("%s(%d images, %d inputs, %d outputs) = %v, want %v", what, images, inputs,
				outputs, got, want)
		}
	}
}
