package decide

import (
	"math"
	"testing"

	"courier/advisor/cluster"
)

// At the upper bound the probability is the confidence, with any recalibration.
func TestOutlook_BoundMatchesProbability(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.05, 0.07, 0.2} {
		for _, shift := range []float64{0, 0.02, 0.5} {
			record := &cluster.Recalibration{Alphas: []cluster.ConfidenceAlpha{{Confidence: 0.9, Alpha: alpha}}}
			o := outlook{
				seconds:       10,
				spread:        spread{0.1, 30},
				shift:         shift,
				recalibration: record,
			}
			bound, ok := o.upperBound(0.9)
			if !ok {
				t.Fatalf("alpha %g, shift %g: got no bound, want one", alpha, shift)
			}
			if p, _ := o.inTime(bound, 0.9); math.Abs(p-0.9) > 1e-3 {
				t.Errorf("alpha %g, shift %g: got probability %g at the bound, want 0.9",
					alpha, shift, p)
			}
		}
	}
}

// Without the runs for a promise there is neither a bound nor a probability.
func TestOutlook_PromisesNothingWithoutRuns(t *testing.T) {
	for _, o := range []outlook{
		{seconds: 10},
		{seconds: 10, spread: spread{0.1, 30}, isExtrapolated: true},
	} {
		if _, ok := o.upperBound(0.5); ok {
			t.Errorf("got a bound of %+v, want none", o)
		}
		if _, ok := o.inTime(math.MaxFloat64, 0.5); ok {
			t.Errorf("got a probability of %+v, want none", o)
		}
	}
}

// However late the deadline is, no probability is 1, and no bound holds with a higher confidence than
// the highest probability.
func TestOutlook_IsNeverCertain(t *testing.T) {
	o := outlook{seconds: 10, spread: spread{0.1, 30}}
	for _, seconds := range []float64{1e3, 1e9, math.MaxFloat64} {
		if p, ok := o.inTime(seconds, 0.95); !ok || p != maxProbability {
			t.Errorf("got probability %g of at most %g s, want %g", p, seconds, maxProbability)
		}
	}
	if _, ok := o.upperBound(0.9999); !ok {
		t.Error("got no bound at the highest probability, want one")
	}
	if bound, ok := o.upperBound(0.99999); ok {
		t.Errorf("got the bound %g s above the highest probability, want none", bound)
	}
}
