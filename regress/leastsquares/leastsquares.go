// Package leastsquares fits linear functions.
//
//	c := leastsquares.Fit(rows, y)   // rows[i]: the inputs of example i, the first of them 1
//	leastsquares.Predict(c, row)
//
// It is deterministic and safe for concurrent use.
package leastsquares

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// smallestPenalty is the first ridge, relative to the sum of squares of an input: enough for inputs
// that are linear functions of others, and too little to change any other fit visibly.
const smallestPenalty = 1e-9

// Fit returns the coefficients that minimize the sum of squared errors. All rows have equal length
// of at least 1. Inputs that others determine share their coefficients. If a number is not finite,
// all coefficients are 0.
func Fit(rows [][]float64, y []float64) []float64 {
	n := len(rows[0])
	sizes := sizesOf(rows)
	products, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	scaled := mat.NewVecDense(n, nil)
	for i, row := range rows {
		for k, x := range row {
			scaled.SetVec(k, x/sizes[k])
		}
		products.SymRankOne(products, 1, scaled)
		right.AddScaledVec(right, y[i], scaled)
	}
	for penalty := smallestPenalty; penalty < 1; penalty *= 10 {
		for k := range n {
			products.SetSym(k, k, products.At(k, k)+penalty)
		}
		c := mat.NewVecDense(n, nil)
		var factors mat.Cholesky
		if factors.Factorize(products) && factors.SolveVecTo(c, right) == nil {
			coefficients := c.RawVector().Data
			for k := range coefficients {
				coefficients[k] /= sizes[k]
			}
			return coefficients
		}
	}
	return make([]float64, n)
}

// sizesOf returns the root of the sum of squares of each input; 1 for an input that is always 0.
func sizesOf(rows [][]float64) []float64 {
	sizes := make([]float64, len(rows[0]))
	for _, row := range rows {
		for k, x := range row {
			sizes[k] = math.Hypot(sizes[k], x)
		}
	}
	for k := range sizes {
		if sizes[k] == 0 {
			sizes[k] = 1
		}
	}
	return sizes
}

// Predict returns the value of a fitted function.
func Predict(coefficients, row []float64) (y float64) {
	for k, c := range coefficients {
		y += c * row[k]
	}
	return y
}
