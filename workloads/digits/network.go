package digits

import (
	"math"
	"math/rand/v2"
)

// Sizes of both networks. They are the smallest that learn the digits well. The fully connected
// layers have nearly all parameters, as in the networks of the ICPE 2021 paper.
const (
	perceptronHidden  = 128
	convolutionHidden = 128
	filterCount       = 16
)

// network is a sequence of layers. One slice has the parameters of all layers, so that a gradient
// and a step of the optimiser are loops over a slice.
type network struct {
	layers  []layer
	offsets []int // index of the first parameter of each layer, and the number of all parameters
}

// newPerceptron returns the network with one hidden layer.
func newPerceptron() *network {
	return newNetwork(
		dense{pixelCount, perceptronHidden},
		rectifier{perceptronHidden},
		dense{perceptronHidden, classCount},
	)
}

// newConvolutional returns the small convolutional network: filters of 3×3, max pooling of 2×2, and
// one hidden layer.
func newConvolutional() *network {
	filter := convolution{side: imageSide, filters: filterCount}
	halve := pool{side: filter.outSide(), planes: filterCount}
	return newNetwork(
		filter,
		halve,
		rectifier{halve.outputs()},
		dense{halve.outputs(), convolutionHidden},
		rectifier{convolutionHidden},
		dense{convolutionHidden, classCount},
	)
}

func newNetwork(layers ...layer) *network {
	n := &network{layers: layers, offsets: []int{0}}
	for i, l := range layers {
		n.offsets = append(n.offsets, n.offsets[i]+l.parameters())
	}
	return n
}

// parameters returns the number of weights and biases.
func (n *network) parameters() int { return n.offsets[len(n.layers)] }

// initialise draws all parameters.
func (n *network) initialise(params []float32, random *rand.Rand) {
	for i, l := range n.layers {
		l.initialise(n.window(params, i), random)
	}
}

// window returns layer i's part of a slice that is laid out like the parameters.
func (n *network) window(list []float32, i int) []float32 {
	return list[n.offsets[i]:n.offsets[i+1]]
}

// forward computes the scores of the images in s.values[0], classCount per image.
func (n *network) forward(params []float32, s *space, images int) []float32 {
	for i, l := range n.layers {
		l.forward(n.window(params, i), s.values[i+1], s.values[i], images)
	}
	return s.values[len(n.layers)][:images*classCount]
}

// backward adds the gradient of the images of the last call of forward to gradient. The last of
// s.deltas has the derivatives of the loss with respect to the scores.
func (n *network) backward(params, gradient []float32, s *space, images int) {
	for i := len(n.layers) - 1; i >= 0; i-- {
		n.layers[i].backward(n.window(params, i), n.window(gradient, i),
			s.deltas[i], s.deltas[i+1], s.values[i+1], s.values[i], images)
	}
}

// space has the values and derivatives before, between and after the layers of a network, for up to
// capacity images at a time.
type space struct {
	capacity       int
	values, deltas [][]float32
}

func newSpace(n *network, capacity int) *space {
	s := &space{
		capacity: capacity,
		values:   [][]float32{make([]float32, capacity*n.layers[0].inputs())},
		deltas:   [][]float32{nil}, // Derivatives with respect to pixels are not needed.
	}
	for _, l := range n.layers {
		s.values = append(s.values, make([]float32, capacity*l.outputs()))
		s.deltas = append(s.deltas, make([]float32, capacity*l.outputs()))
	}
	return s
}

// scoreDeltas returns the slice for the derivatives of the loss with respect to the scores.
func (s *space) scoreDeltas() []float32 { return s.deltas[len(s.deltas)-1] }

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
