package decide

import (
	"math"
	"testing"

	"courier/regress/evidence"
)

var tenSeconds = evidence.Distribution{Location: math.Log(10), Scale: 0.1, Degrees: 30}

// Median, bound and probability agree: at the median it is one half, at the bound the confidence.
func TestOutlook_IsOneDistribution(t *testing.T) {
	o := outlook{Distribution: tenSeconds}
	bound, ok := o.upperBound(0.9)
	if !ok {
		t.Fatal("got no bound, want one")
	}
	for seconds, want := range map[float64]float64{o.Median(): 0.5, bound: 0.9} {
		if p, _ := o.inTime(seconds); math.Abs(p-want) > 1e-9 {
			t.Errorf("got probability %g of at most %g s, want %g", p, seconds, want)
		}
	}
}

// Without the runs for a promise there is neither a bound nor a probability.
func TestOutlook_PromisesNothingWithoutRuns(t *testing.T) {
	for _, o := range []outlook{{}, {Distribution: tenSeconds, isExtrapolated: true}} {
		if _, ok := o.upperBound(0.5); ok {
			t.Errorf("got a bound of %+v, want none", o)
		}
		if _, ok := o.inTime(math.MaxFloat64); ok {
			t.Errorf("got a probability of %+v, want none", o)
		}
	}
}

// However late the deadline is, no probability is 1, and no bound holds with a higher confidence than
// the highest probability.
func TestOutlook_IsNeverCertain(t *testing.T) {
	o := outlook{Distribution: tenSeconds}
	for _, seconds := range []float64{1e3, 1e9, math.MaxFloat64} {
		if p, ok := o.inTime(seconds); !ok || p != maxProbability {
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
