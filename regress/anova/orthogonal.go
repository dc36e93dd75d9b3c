package anova

import (
	"math"
	"slices"
)

// dependent is the share of the norm of a column below which its part that is orthogonal to other
// columns counts as rounding.
const dependent = 1e-8

// orthogonalBasis is an orthonormal basis of the space of some columns.
type orthogonalBasis [][]float64

// add extends the basis by a column. It reports false if the column depends on the basis.
func (b *orthogonalBasis) add(column []float64) bool {
	rest := slices.Clone(column)
	before := math.Sqrt(dot(rest, rest))
	for range 2 { // The second pass removes the rounding errors of the first.
		for _, q := range *b {
			subtract(rest, dot(q, rest), q)
		}
	}
	after := math.Sqrt(dot(rest, rest))
	if !(after > dependent*before) {
		return false
	}
	for i := range rest {
		rest[i] /= after
	}
	*b = append(*b, rest)
	return true
}

// residuals returns the part of y that is orthogonal to the basis.
func (b orthogonalBasis) residuals(y []float64) []float64 {
	rest := slices.Clone(y)
	for range 2 {
		for _, q := range b {
			subtract(rest, dot(q, rest), q)
		}
	}
	return rest
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// subtract subtracts factor times b from a.
func subtract(a []float64, factor float64, b []float64) {
	for i := range a {
		a[i] -= factor * b[i]
	}
}
