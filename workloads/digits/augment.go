package digits

import (
	"math"
	"math/rand/v2"
)

// Maximum distortion of a copy: the usual variation of one writer, and too little to change a digit
// into another one.
const (
	maxTurn  = 0.2 // radians to either side, 11 degrees
	maxShift = 1.0 // pixels in either direction

	// A turn by 0.2 moves a corner 0.63 pixels out of the image, and a shift moves it one more: a
	// margin of two pixels is sufficient.
	marginSide = 2
	paperSide  = imageSide + 2*marginSide
)

// distort sets out to the image in, turned and shifted by random amounts.
func distort(out, in []float32, random *rand.Rand) {
	warp(out, in, maxTurn*symmetric(random), maxShift*symmetric(random),
		maxShift*symmetric(random))
}

// symmetric draws a uniform number from -1 to 1.
func symmetric(random *rand.Rand) float64 { return 2*random.Float64() - 1 }

// warp sets out to the image in, shifted left and up by pixels, then turned about its centre by
// radians, with interpolation. The amounts are at most maxTurn and maxShift in either direction.
func warp(out, in []float32, turn, left, up float64) {
	sine, cosine := math.Sincos(turn)
	sin, cos := float32(sine), float32(cosine)
	const middle = (imageSide - 1) / 2.0
	startX, startY := float32(middle+marginSide+left), float32(middle+marginSide+up)
	var paper [paperSide * paperSide]float32
	for y := range imageSide {
		copy(paper[(y+marginSide)*paperSide+marginSide:], in[y*imageSide:(y+1)*imageSide])
	}
	for y := range imageSide {
		row := out[y*imageSide : (y+1)*imageSide]
		dy := float32(y) - middle
		for x := range row {
			dx := float32(x) - middle
			row[x] = interpolate(&paper, cos*dx-sin*dy+startX, sin*dx+cos*dy+startY)
		}
	}
}

// interpolate returns the value at a point between four pixels, which must be inside the margin.
func interpolate(paper *[paperSide * paperSide]float32, x, y float32) float32 {
	column, line := int(x), int(y)
	fx, fy := x-float32(column), y-float32(line)
	at := line*paperSide + column
	top := paper[at] + fx*(paper[at+1]-paper[at])
	bottom := paper[at+paperSide] + fx*(paper[at+paperSide+1]-paper[at+paperSide])
	return top + fy*(bottom-top)
}
