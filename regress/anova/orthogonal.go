package anova

import (
	"slices"

	"gonum.org/v1/gonum/floats"
)

// dependent is the share of the norm of a column below which its part that is orthogonal to other
// columns counts as rounding.
const dependent = 1e-8

// orthogonalBasis is an orthonormal basis of the space of some columns.
type orthogonalBasis [][]float64

// add extends the basis by a column. It reports false if the column depends on the basis.
func (b *orthogonalBasis) add(column []float64) bool {
	rest := slices.Clone(column)
	before := floats.Norm(rest, 2)
	for range 2 { // The second pass removes the rounding errors of the first.
		for _, q := range *b {
			floats.AddScaled(rest, -floats.Dot(q, rest), q)
		}
	}
	after := floats.Norm(rest, 2)
	if !(after > dependent*before) {
		return false
	}
	floats.Scale(1/after, rest)
	*b = append(*b, rest)
	return true
}

// residuals returns the part of y that is orthogonal to the basis.
func (b orthogonalBasis) residuals(y []float64) []float64 {
	rest := slices.Clone(y)
	for range 2 {
		for _, q := range b {
			floats.AddScaled(rest, -floats.Dot(q, rest), q)
		}
	}
	return rest
}
