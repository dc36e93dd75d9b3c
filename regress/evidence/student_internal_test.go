package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The bound of a sum holds, also if a short part varies far more than the rest.
func TestDistributionPlus_BoundsTheSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 15))
	for _, parts := range [][2]Distribution{
		{{math.Log(720), .03, 1e6}, {math.Log(120), .7, 1e6}},
		{{math.Log(720), .03, 1e6}, {math.Log(720), .3, 1e6}},
		{{math.Log(720), .1, 1e6}, {math.Log(10), .1, 1e6}},
	} {
		bound, held, draws := parts[0].Plus(parts[1]).Quantile(.95), 0.0, 20000
		for range draws {
			sum := 0.0
			for _, d := range parts {
				sum += math.Exp(d.Location + d.Scale*random.NormFloat64())
			}
			if sum <= bound {
				held++
			}
		}
		if held /= float64(draws); held < .94 || held > .98 {
			t.Errorf("the bound at 0.95 of the sum of %+v holds in %.3f", parts, held)
		}
	}
}

func TestStudentQuantile_InvertsTheDistribution(t *testing.T) {
	for _, n := range []float64{1, 1.25, 1.5, 1.71, 2, 2.5, 3.7, 4, 7, 20, 300} {
		d := distuv.StudentsT{Sigma: 1, Nu: n}
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.5, 0.51, 0.6, 0.75, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-8} {
			if got := d.CDF(studentQuantile(p, n)); math.Abs(got-p) > 1e-7*min(p, 1-p)+1e-12 {
				t.Errorf("%g degrees: P(t <= quantile of %g) is %g", n, p, got)
			}
		}
	}
}
