package policy

import "math"

// CurvePoint is a rate that was measured or predicted for a number of units.
type CurvePoint struct {
	Units int
	// Rate is the work per second from which a deadline is planned: exact, or with the confidence of
	// the job. MeanRate is the expected one; 0: unknown, or Rate is exact.
	Rate, MeanRate float64
	// Chance is the probability of meeting the deadline of the job; 0: unknown, or Rate is exact.
	Chance float64
}

// Curve has the rates of a job by number of units, ascending. The rates need not rise.
type Curve []CurvePoint

// Rate returns the rate at one of the curve's numbers of units; 0 for any other number.
func (c Curve) Rate(units int) float64 {
	if p := c.point(units); p != nil {
		return p.Rate
	}
	return 0
}

// point returns the point with a number of units; nil if there is none.
func (c Curve) point(units int) *CurvePoint {
	for i := range c {
		if c[i].Units == units {
			return &c[i]
		}
	}
	return nil
}

// Within returns the point with the largest number of units, of at most some; zero if there is none.
func (c Curve) Within(units int) (best CurvePoint) {
	for _, p := range c {
		if p.Rate > 0 && p.Units <= units && p.Units > best.Units {
			best = p
		}
	}
	return best
}

// Fastest returns the point with the highest rate, the one with fewer units if several have it.
func (c Curve) Fastest() CurvePoint { return fastestWithin(c, math.MaxInt) }

// Rising returns the valid points of the curve up to the fastest one.
func (c Curve) Rising() (points Curve) {
	fastest := c.Fastest()
	for _, p := range c {
		if isUsable(p) && p.Units <= fastest.Units {
			points = append(points, p)
		}
	}
	return points
}

// Hull returns the rising part of the concave hull of the curve and the origin. Points with invalid
// numbers are left out. Between the points of the hull a job can alternate; a point below the hull is
// never worth its units.
func (c Curve) Hull() Curve {
	hull := make(Curve, 0, len(c))
	for _, p := range c {
		if !isUsable(p) {
			continue
		}
		if n := len(hull); n > 0 && (p.Units <= hull[n-1].Units || p.Rate <= hull[n-1].Rate) {
			continue
		}
		for n := len(hull); n > 0 && hull.Slope(n-1) <= slope(hull[n-1], p); n-- {
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	return hull
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

// Slope returns the rate gained per unit on the segment of a hull that ends at point i; the first
// starts at the origin.
func (c Curve) Slope(i int) float64 {
	if i == 0 {
		return slope(CurvePoint{}, c[0])
	}
	return slope(c[i-1], c[i])
}
