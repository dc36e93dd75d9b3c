package policy

import (
	"math"
	"slices"

	"courier/regress/leastsquares"
)

// CurvePoint is a rate that was measured or predicted for a number of units.
type CurvePoint struct {
	Units int
	// Rate is the work per second from which a deadline is planned: exact, or with the confidence of
	// the job. MeanRate is the expected one; 0: unknown, or Rate is exact.
	Rate, MeanRate float64
	// Chance is the probability of meeting the deadline of the job; 0: unknown, or Rate is exact.
	Chance float64
	// Error is the standard deviation of log(Rate / true rate); 0: the rate was measured.
	Error float64
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

// smoothTerms is the largest number of terms of the polynomial of Smooth.
const smoothTerms = 3

// exactWeight is the weight of an exact rate relative to that of the smallest error.
const exactWeight = 100

// Smooth returns the curve with its inexact rates replaced by those of a quadratic in the logarithms of
// units and rates, fitted to all points with weights 1 / Error^2. Independent errors cancel out in part,
// so a point with a large rate by chance does not attract jobs.
func (c Curve) Smooth() Curve {
	smallest := math.Inf(1)
	for _, p := range c {
		if p.Error > 0 {
			smallest = min(smallest, p.Error)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(c), func(p CurvePoint) bool { return !isUsable(p) })
	if math.IsInf(smallest, 1) || len(usable) == 0 {
		return c
	}

	terms := min(smoothTerms, (len(usable)+1)/2)
	var rows [][]float64
	var logs []float64
	for _, p := range usable {
		scale := math.Sqrt(exactWeight)
		if p.Error > 0 {
			scale = smallest / p.Error
		}
		row := powers(p.Units, terms)
		for i := range row {
			row[i] *= scale
		}
		rows, logs = append(rows, row), append(logs, scale*math.Log(p.Rate))
	}
	fitted := leastsquares.Fit(rows, logs)
	smooth := slices.Clone(c)
	for i, p := range c {
		if p.Error > 0 && isUsable(p) {
			rate := math.Exp(leastsquares.Predict(fitted, powers(p.Units, terms)))
			if rate > 0 && !math.IsInf(rate, 1) {
				smooth[i].Rate = rate
			}
		}
	}
	return smooth
}

// powers returns the first powers of log2(units), from 0 on.
func powers(units, terms int) []float64 {
	x := math.Log2(float64(units))
	return []float64{1, x, x * x}[:terms]
}
