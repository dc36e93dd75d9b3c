package evidence

import "math"

// cholesky is the Cholesky factor of an n by n matrix: its lower triangle, row by row.
type cholesky struct {
	n int
	l []float64 // n*n; unspecified above the diagonal
}

// factorize replaces the lower triangle of a symmetric matrix by its Cholesky factor; false if the
// matrix is not positive definite.
func factorize(n int, a []float64) (cholesky, bool) {
	for i := range n {
		row := a[i*n : i*n+n]
		for j := range i {
			other := a[j*n : j*n+n]
			row[j] = (row[j] - dot(row[:j], other[:j])) / other[j]
		}
		d := row[i] - dot(row[:i], row[:i])
		if !(d > 0) || math.IsInf(d, 0) {
			return cholesky{}, false
		}
		row[i] = math.Sqrt(d)
	}
	return cholesky{n, a}, true
}

// logDeterminant returns the log determinant of the factorized matrix.
func (c cholesky) logDeterminant() float64 {
	sum := 0.0
	for i := range c.n {
		sum += math.Log(c.l[i*c.n+i])
	}
	return 2 * sum
}

// forward solves L x = b in place.
func (c cholesky) forward(b []float64) {
	for i := range c.n {
		row := c.l[i*c.n : i*c.n+c.n]
		b[i] = (b[i] - dot(row[:i], b[:i])) / row[i]
	}
}

// backward solves L' x = b in place.
func (c cholesky) backward(b []float64) {
	for i := c.n - 1; i >= 0; i-- {
		b[i] /= c.l[i*c.n+i]
		row := c.l[i*c.n : i*c.n+i]
		for j, l := range row {
			b[j] -= l * b[i]
		}
	}
}

// solve returns the solution of K x = b.
func (c cholesky) solve(b []float64) []float64 {
	x := append([]float64(nil), b...)
	c.forward(x)
	c.backward(x)
	return x
}

// inverse returns the inverse of the factorized matrix, n by n.
func (c cholesky) inverse() []float64 {
	inverse := make([]float64, c.n*c.n)
	for i := range c.n {
		column := inverse[i*c.n : i*c.n+c.n] // a row, as the inverse is symmetric
		column[i] = 1
		c.forward(column)
		c.backward(column)
	}
	return inverse
}

// dot returns the dot product. Four independent sums let the processor overlap the additions.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// matern52 is the Matérn kernel of smoothness 5/2 at a squared scaled distance (Rasmussen, Williams
// 2006, equation 4.17).
func matern52(squared float64) float64 {
	r := math.Sqrt(5 * squared)
	return (1 + r + r*r/3) * math.Exp(-r)
}
