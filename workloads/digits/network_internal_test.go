package digits

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The reference computes in double precision, one image and one number at a time, and shares no
// code with the layers.

func referenceLoss(name string, params []float64, set imageSet) float64 {
	loss := 0.0
	for i := range set.len() {
		values := make([]float64, pixelCount)
		for k, v := range set.image(i) {
			values[k] = float64(v)
		}
		var rest = params
		if name == cnn {
			values, rest = referenceFilters(rest, values)
			values, rest = referenceDense(rest, values, convolutionHidden)
		} else {
			values, rest = referenceDense(rest, values, perceptronHidden)
		}
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

// referenceFilters applies the filters, the rectifier and the pooling.
func referenceFilters(params, picture []float64) (out, rest []float64) {
	answer := func(f, y, x int) float64 {
		sum := params[filterCount*9+f]
		for dy := range 3 {
			for dx := range 3 {
				sum += params[f*9+dy*3+dx] * picture[(y+dy)*8+x+dx]
			}
		}
		return math.Max(sum, 0)
	}
	for f := range filterCount {
		for y := 0; y < 6; y += 2 {
			for x := 0; x < 6; x += 2 {
				out = append(out, math.Max(math.Max(answer(f, y, x), answer(f, y, x+1)),
					math.Max(answer(f, y+1, x), answer(f, y+1, x+1))))
			}
		}
	}
	return out, params[filterCount*10:]
}

func TestNetwork_GradientMatchesFiniteDifferences(t *testing.T) {
	training, _ := mustLoad(t)
	set := training.slice(0, 7) // a block of four images, and three alone
	for name, n := range map[string]*network{mlp: newPerceptron(), cnn: newConvolutional()} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 7))
			params := make([]float32, n.parameters())
			n.initialise(params, random)
			double := make([]float64, len(params))
			for k := range params {
				params[k] += float32(0.05 * random.NormFloat64()) // biases too
				double[k] = float64(params[k])
			}
			gradient := make([]float32, len(params))
			s := newSpace(n, set.len())
			copy(s.values[0], set.pixels)
			scores := n.forward(params, s, set.len())
			loss := crossEntropy(
				s.scoreDeltas(), scores, set.labels, 1/float64(set.len()),
			) / float64(set.len())
			n.backward(params, gradient, s, set.len())

			if want := referenceLoss(name, double, set); math.Abs(loss-want) > 1e-5*want {
				t.Errorf("loss = %g, want %g", loss, want)
			}
			for _, k := range checked(n, random) {
				const step = 1e-6
				was := double[k]
				double[k] = was + step
				more := referenceLoss(name, double, set)
				double[k] = was - step
				less := referenceLoss(name, double, set)
				double[k] = was
				want := (more - less) / (2 * step)
				if got := float64(gradient[k]); math.Abs(got-want) > 1e-5+1e-3*math.Abs(want) {
					t.Errorf("parameter %d of %d: derivative = %g, want %g", k, len(params), got,
						want)
				}
			}
		})
	}
}

// checked returns the parameters of every layer that the test checks: the first and the last, the
// last weights and biases, and some random ones.
func checked(n *network, random *rand.Rand) []int {
	var at []int
	for i := range n.layers {
		first, last := n.offsets[i], n.offsets[i+1]
		if first == last {
			continue
		}
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
