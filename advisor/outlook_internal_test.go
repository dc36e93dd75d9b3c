package advisor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// For any tables, the probability is at least the confidence at the upper bound, and less just
// below it.
func TestOutlook_BoundMatchesProbability(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	table := func(n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = random.NormFloat64() / 10
		}
		slices.Sort(all)
		return all
	}
	for _, n := range []int{1, 19, 20, 100, 199, 200, 500, 1000} {
		for _, own := range []int{0, 1, 50, 200} {
			var record *Recalibration
			if own > 0 {
				record = &Recalibration{sorted: table(own), alpha: map[float64]float64{0.9: 0.07}}
			}
			for _, confidence := range []float64{0.5, 0.9, 0.95} {
				o := outlook{seconds: 10, table: table(n), narrowing: 0.8, recalibration: record}
				bound, ok := o.bound(confidence)
				if !ok {
					if p, _ := o.probability(1e9, confidence); p >= confidence {
						t.Errorf("%d and %d residuals: got no bound for %g, want one because the probability is %g",
							n, own, confidence, p)
					}
					continue
				}
				if p, _ := o.probability(bound*(1+1e-9), confidence); p < confidence-1e-9 {
					t.Errorf("%d and %d residuals: got probability %g at the bound for %g, want at least that level",
						n, own, p, confidence)
				}
				if p, _ := o.probability(bound*(1-1e-9), confidence); p >= confidence+1e-9 {
					t.Errorf("%d and %d residuals: got probability %g below the bound for %g, want less than that",
						n, own, p, confidence)
				}
			}
		}
	}
	void := outlook{seconds: 10, table: table(100), narrowing: 1, isExtrapolated: true}
	if _, ok := void.bound(0.5); ok {
		t.Error("got a bound of an extrapolated outlook, want none")
	}
	if _, ok := void.probability(math.MaxFloat64, 0.5); ok {
		t.Error("got a probability of an extrapolated outlook, want none")
	}
}
