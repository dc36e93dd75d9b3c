package policy

import (
	"math"
	"slices"
)

// smoothTerms is the largest number of terms of the polynomial of Smooth.
const smoothTerms = 3

// Smooth returns the curve with its inexact rates replaced by those of a quadratic in the logarithms of
// units and rates, fitted to all points with weights 1 / Error^2. Independent errors cancel out in part,
// so a point with a large rate by chance does not attract jobs.
func (c Curve) Smooth() Curve {
	smallest, usable := math.Inf(1), 0
	for _, p := range c {
		if isUsable(p) {
			usable++
		}
		if p.Error > 0 {
			smallest = min(smallest, p.Error)
		}
	}
	if math.IsInf(smallest, 1) {
		return c
	}
	fitted, ok := c.fitLogs(min(smoothTerms, (usable+1)/2), smallest)
	if !ok {
		return c
	}
	smooth := slices.Clone(c)
	for i, p := range c {
		rate := math.Exp(fitted(p.Units))
		if p.Error > 0 && isUsable(p) && rate > 0 && !math.IsInf(rate, 1) {
			smooth[i].Rate = rate
		}
	}
	return smooth
}

// exactWeight is the weight of an exact rate relative to that of the smallest error.
const exactWeight = 100

// fitLogs returns the logarithm of the rate by units, as a polynomial in log2(units) with some terms,
// fitted by weighted least squares. ok is false without a solution.
func (c Curve) fitLogs(terms int, smallest float64) (fitted func(units int) float64, ok bool) {
	var a [smoothTerms][smoothTerms + 1]float64 // normal equations with the right-hand side
	for _, p := range c {
		if !isUsable(p) {
			continue
		}
		weight := float64(exactWeight)
		if p.Error > 0 {
			weight = smallest * smallest / (p.Error * p.Error)
		}
		f := powers(p.Units)
		for i := range terms {
			for k := range terms {
				a[i][k] += weight * f[i] * f[k]
			}
			a[i][smoothTerms] += weight * f[i] * math.Log(p.Rate)
		}
	}
	for i := range terms { // the matrix is positive definite: no pivoting
		if !(a[i][i] > 1e-9) {
			return nil, false
		}
		for k := range terms {
			if k == i {
				continue
			}
			ratio := a[k][i] / a[i][i]
			for m := range a[k] {
				a[k][m] -= ratio * a[i][m]
			}
		}
	}
	return func(units int) float64 {
		sum := 0.0
		for i, f := range powers(units) {
			if i < terms {
				sum += a[i][smoothTerms] / a[i][i] * f
			}
		}
		return sum
	}, true
}

func powers(units int) [smoothTerms]float64 {
	x := math.Log2(float64(units))
	return [...]float64{1, x, x * x}
}
