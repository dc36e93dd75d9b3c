package digits

import (
	"math"
	"math/rand/v2"
)

// How far a copy may be moved. A person writes that differently from one day
// to the next, and no digit turns into another one.
const (
	largestTurn  = 0.2 // radians to either side, 11 degrees
	largestShift = 1.0 // pixels in either direction

	// A turn by 0.2 takes a corner 0.63 pixels out of the picture and a shift
	// one more: two pixels of paper around it are never left.
	marginSide = 2
	paperSide  = imageSide + 2*marginSide
)

// distort sets out to the image in, turned and shifted by amounts drawn from
// random.
func distort(out, in []float32, random *rand.Rand) {
	warp(out, in, largestTurn*symmetric(random), largestShift*symmetric(random),
		largestShift*symmetric(random))
}

// symmetric draws evenly from -1 to 1.
func symmetric(random *rand.Rand) float64 { return 2*random.Float64() - 1 }

// warp sets out to the image in, shifted left and up by pixels, then turned
// about its middle by radians; pixels between pixels are interpolated. The
// amounts are at most largestTurn and largestShift to either side.
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

// interpolate returns the ink at a place between four pixels, which must all
// lie on the paper.
func interpolate(paper *[paperSide * paperSide]float32, x, y float32) float32 {
	column, line := int(x), int(y)
	fx, fy := x-float32(column), y-float32(line)
	at := line*paperSide + column
	top := paper[at] + fx*(paper[at+1]-paper[at])
	bottom := paper[at+paperSide] + fx*(paper[at+paperSide+1]-paper[at+paperSide])
	return top + fy*(bottom-top)
}
