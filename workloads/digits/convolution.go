package digits

import "math/rand/v2"

// kernelSide is the side of a filter in pixels: the smallest that covers a pixel and its
// neighbours.
const (
	kernelSide = 3
	kernelSize = kernelSide * kernelSide
)

// convolution applies filters of 3×3 to a square image with one channel, without padding: a side of
// n becomes n-2. Its parameters are the filters row by row, and then a bias for each. It must be
// the first layer of a network, because it computes no derivatives for a previous layer.
type convolution struct{ side, filters int }

func (c convolution) outSide() int    { return c.side - kernelSide + 1 }
func (c convolution) inputs() int     { return c.side * c.side }
func (c convolution) outputs() int    { return c.filters * c.outSide() * c.outSide() }
func (c convolution) parameters() int { return c.filters * (kernelSize + 1) }

func (c convolution) initialise(params []float32, random *rand.Rand) {
	drawWeights(params[:c.filters*kernelSize], kernelSize, random)
	clear(params[c.filters*kernelSize:])
}

func (c convolution) forward(params, out, in []float32, images int) {
	size, plane := c.inputs(), c.outSide()*c.outSide()
	biases := params[c.filters*kernelSize:]
	for i := range images {
		picture := in[i*size : (i+1)*size]
		for f := range c.filters {
			at := (i*c.filters + f) * plane
			c.slide(out[at:at+plane], picture, params[f*kernelSize:(f+1)*kernelSize], biases[f])
		}
	}
}

// slide sets plane to the output of one filter for one image.
func (c convolution) slide(plane, picture, filter []float32, bias float32) {
	side, n := c.side, c.outSide()
	f := (*[kernelSize]float32)(filter)
	for y := range n {
		row := plane[y*n : (y+1)*n]
		top := picture[y*side:][:n+2]
		middle := picture[(y+1)*side:][:n+2]
		bottom := picture[(y+2)*side:][:n+2]
		for x := range row {
			row[x] = bias +
				f[0]*top[x] + f[1]*top[x+1] + f[2]*top[x+2] +
				f[3]*middle[x] + f[4]*middle[x+1] + f[5]*middle[x+2] +
				f[6]*bottom[x] + f[7]*bottom[x+1] + f[8]*bottom[x+2]
		}
	}
}

func (c convolution) backward(_, gradient, _, outDelta, _, in []float32, images int) {
	size, plane := c.inputs(), c.outSide()*c.outSide()
	biases := gradient[c.filters*kernelSize:]
	for i := range images {
		picture := in[i*size : (i+1)*size]
		for f := range c.filters {
			at := (i*c.filters + f) * plane
			biases[f] += c.gather(gradient[f*kernelSize:(f+1)*kernelSize], picture,
				outDelta[at:at+plane])
		}
	}
}

// gather adds the contribution of one image to the derivatives of one filter, and returns that to
// the derivative of the bias.
func (c convolution) gather(filter, picture, plane []float32) float32 {
	side, n := c.side, c.outSide()
	var f [kernelSize]float32
	bias := float32(0)
	for y := range n {
		row := plane[y*n : (y+1)*n]
		top := picture[y*side:][:n+2]
		middle := picture[(y+1)*side:][:n+2]
		bottom := picture[(y+2)*side:][:n+2]
		for x, d := range row {
			// After the rectifier and the pool, three of four are zero.
			if d == 0 {
				continue
			}
			bias += d
			f[0] += d * top[x]
			f[1] += d * top[x+1]
			f[2] += d * top[x+2]
			f[3] += d * middle[x]
			f[4] += d * middle[x+1]
			f[5] += d * middle[x+2]
			f[6] += d * bottom[x]
			f[7] += d * bottom[x+1]
			f[8] += d * bottom[x+2]
		}
	}
	for k, v := range f {
		filter[k] += v
	}
	return bias
}

// pool is max pooling of 2×2 pixels in every plane; side is even.
type pool struct{ side, planes int }

func (p pool) inputs() int                      { return p.planes * p.side * p.side }
func (p pool) outputs() int                     { return p.inputs() / 4 }
func (p pool) parameters() int                  { return 0 }
func (p pool) initialise([]float32, *rand.Rand) {}

func (p pool) forward(_, out, in []float32, images int) {
	half := p.side / 2
	// Planes are contiguous, so that their rows are one list of pairs.
	for r := range images * p.planes * half {
		top, bottom := in[2*r*p.side:][:p.side], in[(2*r+1)*p.side:][:p.side]
		row := out[r*half : (r+1)*half]
		for x := range row {
			row[x] = max(top[2*x], top[2*x+1], bottom[2*x], bottom[2*x+1])
		}
	}
}

func (p pool) backward(_, _, inDelta, outDelta, out, in []float32, images int) {
	if inDelta == nil {
		return
	}
	half := p.side / 2
	clear(inDelta[:images*p.inputs()])
	for r := range images * p.planes * half {
		first := 2 * r * p.side
		for x := range half {
			at, k := first+2*x, r*half+x
			// Of equal values only the first gets the derivative.
			switch out[k] {
			case in[at]:
			case in[at+1]:
				at++
			case in[at+p.side]:
				at += p.side
			default:
				at += p.side + 1
			}
			inDelta[at] = outDelta[k]
		}
	}
}
