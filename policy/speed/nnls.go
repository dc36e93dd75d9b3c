package speed

import (
	"math"
	"slices"
)

type matrix [termCount][termCount]float64

// addRow adds a weighted row of a least-squares problem to its normal equations.
func (m *matrix) addRow(rhs *[termCount]float64, row terms, value, weight float64) {
	for i := range row {
		for j := range row {
			m[i][j] += weight * row[i] * row[j]
		}
		rhs[i] += weight * row[i] * value
	}
}

// solve returns the solution of the equations of some of the variables; the others are 0. It
// returns false if the equations are singular.
func (m *matrix) solve(rhs [termCount]float64, isUsed [termCount]bool) (x Coefficients, ok bool) {
	var used []int
	for i, is := range isUsed {
		if is {
			used = append(used, i)
		}
	}

	var l matrix // Cholesky factor
	var y [termCount]float64
	for a, i := range used {
		for b, j := range used[:a+1] {
			sum := m[i][j]
			for k := range b {
				sum -= l[a][k] * l[b][k]
			}
			if a > b {
				l[a][b] = sum / l[b][b]
				continue
			}
			if !(sum > 0) || math.IsInf(sum, 0) {
				return x, false
			}
			l[a][a] = math.Sqrt(sum)
		}
		y[a] = rhs[i]
		for k := range a {
			y[a] -= l[a][k] * y[k]
		}
		y[a] /= l[a][a]
	}
	for a, i := range slices.Backward(used) {
		for k := a + 1; k < len(used); k++ {
			y[a] -= l[k][a] * y[k]
		}
		y[a] /= l[a][a]
		x[i] = y[a]
	}
	return x, true
}

// inverse returns the inverse; false if the matrix is singular.
func (m *matrix) inverse() (inv matrix, ok bool) {
	all := [termCount]bool{true, true, true, true, true, true}
	for i := range inv {
		var unit [termCount]float64
		unit[i] = 1
		column, ok := m.solve(unit, all)
		if !ok {
			return inv, false
		}
		inv[i] = column
	}
	return inv, true
}

// nonNegative solves the normal equations under x >= 0 by the active-set method of Lawson and Hanson
// (Solving Least Squares Problems, 1974, chapter 23). It returns false if they are singular.
func (m *matrix) nonNegative(rhs [termCount]float64) (x Coefficients, ok bool) {
	var isFree [termCount]bool
	for range 3 * termCount { // the method ends; rounding must not make it cycle
		next := m.steepest(rhs, x, isFree)
		if next < 0 {
			return x, true
		}
		isFree[next] = true
		for {
			target, ok := m.solve(rhs, isFree)
			if !ok {
				return x, false
			}
			if !x.stepTo(target, &isFree) {
				break
			}
		}
	}
	return x, true
}

// steepest returns the bound variable whose increase reduces the error most; -1 if none does.
func (m *matrix) steepest(rhs [termCount]float64, x Coefficients, isFree [termCount]bool) int {
	next, steepest := -1, 0.0
	for i := range x {
		if isFree[i] {
			continue
		}
		descent := rhs[i]
		for j := range x {
			descent -= m[i][j] * x[j]
		}
		if descent /= math.Sqrt(m[i][i]); descent > steepest+1e-12*math.Abs(rhs[i]) {
			next, steepest = i, descent
		}
	}
	return next
}

// stepTo moves to a target as far as no free variable becomes negative. It reports whether it bound
// a variable, so that there is another target.
func (c *Coefficients) stepTo(target Coefficients, isFree *[termCount]bool) bool {
	length, blocking := 1.0, -1
	for i := range c {
		if isFree[i] && target[i] <= 0 {
			if l := c[i] / (c[i] - target[i]); blocking < 0 || l < length {
				length, blocking = l, i
			}
		}
	}
	if blocking < 0 {
		*c = target
		return false
	}
	for i := range c {
		if isFree[i] {
			c[i] += length * (target[i] - c[i])
		}
	}
	c[blocking], isFree[blocking] = 0, false
	return true
}
