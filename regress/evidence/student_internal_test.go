package evidence

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func TestStudentQuantile_InvertsTheDistribution(t *testing.T) {
	for _, n := range []float64{1, 1.71, 2, 2.5, 3.7, 4, 7, 20, 300} {
		d := distuv.StudentsT{Sigma: 1, Nu: n}
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.5, 0.51, 0.6, 0.75, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-8} {
			if got := d.CDF(studentQuantile(p, n)); math.Abs(got-p) > 1e-7*min(p, 1-p)+1e-12 {
				t.Errorf("%g degrees: P(t <= quantile of %g) is %g", n, p, got)
			}
		}
	}
}
