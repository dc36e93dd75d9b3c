package speed

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The solution meets the conditions of Karush, Kuhn and Tucker: no coefficient is negative, the
// gradient is zero at the positive ones and does not point inwards at the others.
func TestNonNegative_IsOptimal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	bound := 0
	for n := range 2000 {
		var m matrix
		var rhs [termCount]float64
		for range 4 + random.IntN(8) {
			var row terms
			for i := range row {
				row[i] = random.NormFloat64()
			}
			m.addRow(&rhs, row, random.NormFloat64(), random.Float64())
		}
		for i := range m {
			m[i][i] += 1e-3
		}
		x, ok := m.nonNegative(rhs)
		if !ok {
			t.Fatalf("case %d: singular", n)
		}
		for i := range x {
			gradient := -rhs[i]
			for j := range x {
				gradient += m[i][j] * x[j]
			}
			switch {
			case x[i] < 0 || gradient < -1e-8:
				t.Fatalf("case %d: coefficient %g with gradient %g", n, x[i], gradient)
			case x[i] > 0 && math.Abs(gradient) > 1e-8:
				t.Fatalf("case %d: positive coefficient with gradient %g", n, gradient)
			case x[i] == 0:
				bound++
			}
		}
	}
	if bound < 1000 {
		t.Errorf("%d coefficients at zero, want more: are the cases still hard?", bound)
	}
}
