package digits

import (
	"math"
	"math/rand/v2"
)

// layer is one layer of a network. It has no state: its parameters are a part of the parameters of
// the network, and a worker has its values and derivatives. Slices have the values of one image
// after the other.
type layer interface {
	inputs() int     // number of input values per image
	outputs() int    // number of output values per image
	parameters() int // number of weights and biases; 0: fixed layer

	// initialise draws the initial parameters.
	initialise(params []float32, random *rand.Rand)
	// forward computes out from in.
	forward(params, out, in []float32, images int)
	// backward computes derivatives of the loss from outDelta, its derivatives by out. It adds
	// the derivatives by the parameters to gradient, and sets inDelta to the derivatives by
	// in. inDelta may be nil for the first layer.
	backward(params, gradient, inDelta, outDelta, out, in []float32, images int)
}

var (
	_ layer = dense{}
	_ layer = convolution{}
	_ layer = pool{}
	_ layer = rectifier{}
)

// drawWeights draws weights from a normal distribution of variance 2/inputs, which keeps the
// variance of values from layer to layer if rectifiers follow (He et al., Delving Deep into
// Rectifiers, ICCV 2015, section 2.2).
func drawWeights(weights []float32, inputs int, random *rand.Rand) {
	deviation := math.Sqrt(2 / float64(inputs))
	for i := range weights {
		weights[i] = float32(deviation * random.NormFloat64())
	}
}

// dense is a fully connected layer: a row of weights per output, and then biases.
type dense struct{ in, out int }

func (d dense) inputs() int     { return d.in }
func (d dense) outputs() int    { return d.out }
func (d dense) parameters() int { return d.out * (d.in + 1) }

func (d dense) initialise(params []float32, random *rand.Rand) {
	drawWeights(params[:d.in*d.out], d.in, random)
	clear(params[d.in*d.out:])
}

func (d dense) forward(params, out, in []float32, images int) {
	affine(out, in, params, params[d.in*d.out:], images, d.in, d.out)
}

func (d dense) backward(params, gradient, inDelta, outDelta, _, in []float32, images int) {
	addOuter(gradient, outDelta, in, images, d.in, d.out)
	bias := gradient[d.in*d.out:]
	for i := range images {
		addOne(bias, outDelta[i*d.out:(i+1)*d.out], 1)
	}
	if inDelta != nil {
		multiply(inDelta, outDelta, params, images, d.in, d.out)
	}
}

// rectifier sets negative values to 0 (ReLU).
type rectifier struct{ size int }

func (r rectifier) inputs() int                      { return r.size }
func (r rectifier) outputs() int                     { return r.size }
func (r rectifier) parameters() int                  { return 0 }
func (r rectifier) initialise([]float32, *rand.Rand) {}

func (r rectifier) forward(_, out, in []float32, images int) {
	in = in[:images*r.size]
	out = out[:len(in)]
	for k, v := range in {
		out[k] = max(v, 0)
	}
}

func (r rectifier) backward(_, _, inDelta, outDelta, out, _ []float32, images int) {
	if inDelta == nil {
		return
	}
	out = out[:images*r.size]
	inDelta, outDelta = inDelta[:len(out)], outDelta[:len(out)]
	for k, v := range out {
		// On integers this is a conditional move. A branch would be mispredicted
		// for every other value.
		bits := math.Float32bits(outDelta[k])
		if v <= 0 {
			bits = 0
		}
		inDelta[k] = math.Float32frombits(bits)
	}
}
