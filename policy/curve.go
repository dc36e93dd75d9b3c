package policy

import (
	"math"
	"math/bits"
)

// CurvePoint is a rate that was measured or predicted for a number of units.
type CurvePoint struct {
	Units int
	Rate  float64 // work per second
	// Error is the standard deviation of log(Rate / true rate); 0: the rate was measured.
	Error float64
}

// Curve has the rates of a job by number of units, ascending. The rates need not rise.
type Curve []CurvePoint

// Rate returns the rate at one of the curve's numbers of units; 0 for any other number.
func (c Curve) Rate(units int) float64 {
	for _, p := range c {
		if p.Units == units {
			return p.Rate
		}
	}
	return 0
}

// Fastest returns the point with the highest rate, the one with fewer units if several have it.
func (c Curve) Fastest() CurvePoint {
	var best CurvePoint
	for _, p := range c {
		if p.Rate > best.Rate {
			best = p
		}
	}
	return best
}

// Rising returns the valid points of the curve up to the fastest one.
func (c Curve) Rising() Curve {
	fastest := c.Fastest()
	var points Curve
	for _, p := range c {
		if isUsable(p) && p.Units <= fastest.Units {
			points = append(points, p)
		}
	}
	return points
}

// Hull appends the rising part of the concave hull of the curve and the origin to dst. Points with
// invalid numbers are left out. Between the points of the hull a job can alternate; a point below
// the hull is never worth its units.
func (c Curve) Hull(dst Curve) Curve {
	first := len(dst)
	for _, p := range c {
		if !isUsable(p) || len(dst) > first && p.Units <= dst[len(dst)-1].Units {
			continue
		}
		if len(dst) > first && p.Rate <= dst[len(dst)-1].Rate {
			continue
		}
		for len(dst) > first && slopeTo(dst, first, len(dst)-1) <= slope(dst[len(dst)-1], p) {
			dst = dst[:len(dst)-1]
		}
		dst = append(dst, p)
	}
	return dst
}

// At returns the rate at a number of units, interpolated on a hull.
func (c Curve) At(units float64) float64 {
	var last CurvePoint
	for _, p := range c {
		if units <= float64(p.Units) {
			return last.Rate + (units-float64(last.Units))*slope(last, p)
		}
		last = p
	}
	return last.Rate
}

func isUsable(p CurvePoint) bool {
	return p.Units > 0 && p.Rate > 0 && !math.IsInf(p.Rate, 1)
}

// slope returns the rate gained per unit between two points.
func slope(from, to CurvePoint) float64 {
	return (to.Rate - from.Rate) / float64(to.Units-from.Units)
}

// slopeTo returns the slope that ends at a point of a hull; the first starts at the origin.
func slopeTo(hull Curve, first, i int) float64 {
	if i == first {
		return slope(CurvePoint{}, hull[i])
	}
	return slope(hull[i-1], hull[i])
}

// Slope returns the rate gained per unit on the segment of a hull that ends at point i.
func (c Curve) Slope(i int) float64 {
	return slopeTo(c, 0, i)
}

// log2 returns the base-2 logarithm of a positive number, exact for powers of two.
func log2(n int) float64 {
	if n&(n-1) == 0 {
		return float64(bits.TrailingZeros(uint(n)))
	}
	return math.Log2(float64(n))
}
