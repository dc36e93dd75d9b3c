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
				record = &Recalibration{sorted: table(own), Alphas: []confidenceAlpha{{0.9, 0.07}}}
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

// However late the deadline is, no probability is 1, and no bound holds with a higher confidence than
// the highest probability.
func TestOutlook_IsNeverCertain(t *testing.T) {
	o := outlook{seconds: 10, narrowing: 1, uncertainty: uncertainty{scale: 0.1, degrees: 30}}
	for _, seconds := range []float64{1e3, 1e9, math.MaxFloat64} {
		if p, ok := o.probability(seconds, 0.95); !ok || p != maxProbability {
			t.Errorf("got probability %g of at most %g s, want %g", p, seconds, maxProbability)
		}
	}
	if _, ok := o.bound(0.9999); !ok {
		t.Error("got no bound at the highest probability, want one")
	}
	if bound, ok := o.bound(0.99999); ok {
		t.Errorf("got the bound %g s above the highest probability, want none", bound)
	}
}
