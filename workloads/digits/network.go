package digits

import (
	"math"
	"math/rand/v2"
)

// dense is a fully connected layer: a row of weights per output, and then biases. It has no state: its
// parameters are a part of those of the perceptron, and a worker has its values and derivatives.
// Slices have the values of one image after the other.
type dense struct{ in, out int }

// The layers of the perceptron, with a rectifier between them: the smallest that learn the digits well.
var (
	hidden = dense{pixelCount, 128}
	output = dense{hidden.out, classCount}
)

// One slice has the parameters of both layers, so that a gradient and a step of the optimiser are loops
// over a slice.
var parameterCount = hidden.parameters() + output.parameters()

func (d dense) parameters() int { return d.out * (d.in + 1) }

// initialise draws weights from a normal distribution of variance 2/inputs, which keeps the variance of
// values from layer to layer if rectifiers follow (He et al., Delving Deep into Rectifiers, ICCV 2015,
// section 2.2). Biases stay 0.
func (d dense) initialise(params []float32, random *rand.Rand) {
	deviation := math.Sqrt(2 / float64(d.in))
	for i := range d.in * d.out {
		params[i] = float32(deviation * random.NormFloat64())
	}
}

// forward computes out from in.
func (d dense) forward(params, out, in []float32, images int) {
	affine(out, in, params, params[d.in*d.out:], images, d.in, d.out)
}

// backward adds the derivatives of the loss by the parameters to gradient. delta are those by the outputs.
func (d dense) backward(gradient, delta, in []float32, images int) {
	addOuter(gradient, delta, in, images, d.in, d.out)
	bias := gradient[d.in*d.out : d.parameters()]
	for i := range images {
		addOne(bias, delta[i*d.out:(i+1)*d.out], 1)
	}
}

// space has the values of the perceptron, and the derivatives of the loss by them, for a number of images.
type space struct {
	pixels, hidden, scores  []float32
	hiddenDelta, scoreDelta []float32
}

func newSpace(images int) *space {
	return &space{
		pixels:      make([]float32, images*pixelCount),
		hidden:      make([]float32, images*hidden.out),
		scores:      make([]float32, images*classCount),
		hiddenDelta: make([]float32, images*hidden.out),
		scoreDelta:  make([]float32, images*classCount),
	}
}

// forward computes the scores of the first images of s.pixels, classCount per image.
func (s *space) forward(params []float32, images int) []float32 {
	hidden.forward(params, s.hidden, s.pixels, images)
	for k, v := range s.hidden[:images*hidden.out] {
		s.hidden[k] = max(v, 0) // the rectifier (ReLU)
	}
	output.forward(params[hidden.parameters():], s.scores, s.hidden, images)
	return s.scores[:images*classCount]
}

// backward adds the gradient of the images of the last call of forward to gradient. s.scoreDelta has the
// derivatives of the loss by the scores.
func (s *space) backward(params, gradient []float32, images int) {
	output.backward(gradient[hidden.parameters():], s.scoreDelta, s.hidden, images)
	multiply(s.hiddenDelta, s.scoreDelta, params[hidden.parameters():], images, output.in, output.out)
	delta := s.hiddenDelta[:images*hidden.out]
	for k, v := range s.hidden[:len(delta)] {
		// On integers this is a conditional move. A branch would be mispredicted for every other value.
		bits := math.Float32bits(delta[k])
		if v <= 0 {
			bits = 0
		}
		delta[k] = math.Float32frombits(bits)
	}
	hidden.backward(gradient, s.hiddenDelta, s.pixels, images)
}

// crossEntropy returns the sum over the images of the negative log-probability (softmax of the
// scores) of the right class. It sets deltas to the derivatives of that sum with respect to the
// scores, times scale. It uses double precision, because exponentials need it.
func crossEntropy(deltas, scores []float32, labels []uint8, scale float64) float64 {
	loss := 0.0
	for i, label := range labels {
		row := scores[i*classCount : (i+1)*classCount]
		top := row[0]
		for _, v := range row {
			top = max(top, v)
		}
		var powers [classCount]float64
		total := 0.0
		for k, v := range row {
			powers[k] = math.Exp(float64(v - top))
			total += powers[k]
		}
		loss += math.Log(total) - float64(row[label]-top)
		powers[label] -= total
		for k, p := range powers {
			deltas[i*classCount+k] = float32(p * scale / total)
		}
	}
	return loss
}

// countCorrect returns the number of images whose right class has the highest score.
func countCorrect(scores []float32, labels []uint8) int {
	correct := 0
	for i, label := range labels {
		row := scores[i*classCount : (i+1)*classCount]
		best := 0
		for k, v := range row {
			if v > row[best] {
				best = k
			}
		}
		if best == int(label) {
			correct++
		}
	}
	return correct
}
