package decide

import (
	"math"
	"testing"
	"time"

	"courier/regress/evidence"
)

var tenSeconds = evidence.Distribution{Location: math.Log(10), Scale: 0.1, Degrees: 30}

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

// A start-up in progress varies by as many seconds as before it began, however much of it has passed. One that
// is not known takes its time, too.
func TestOutlook_StartupInProgress(t *testing.T) {
	e := evidence.EpochTime{Variance: 1e-4, Degrees: 30, Support: evidence.Measured}
	startup := evidence.Distribution{Location: math.Log(20), Scale: 0.2, Degrees: 5}
	at := func(passed float64, startup evidence.Distribution) outlook {
		j := plannedJob{startup: 20}
		if startup.Known() {
			j.setProgress(&Member{Since: time.Duration(passed * 1e9)}, startup)
		}
		return (&simulatedJob{plan: &j}).outlook(max(20-passed, 0)+10, &e, startup)
	}
	fresh := at(0, startup)
	bound, _ := fresh.upperBound(0.9)
	for _, passed := range []float64{5, 10, 18, 19.9, 20.1} {
		o := at(passed, startup)
		if p, _ := o.inTime(bound - passed); math.Abs(p-0.9) > 0.02 {
			t.Errorf("after %g s of the start-up: probability %.3f, want 0.9 as before", passed, p)
		}
	}
	if o := at(0, evidence.Distribution{}); math.Abs(o.Median()-30) > 1e-6 {
		t.Errorf("with an unknown start-up of 20 s: %g s, want 30", o.Median())
	}
}

// What has passed of the epochs whose event has not come shortens the rest; what is overdue lengthens it.
func TestUnreported(t *testing.T) {
	for _, tc := range []struct{ block, epochs, spent, want float64 }{
		{1, 9, .5, .5}, {1, 9, 1, .95}, {1, 9, 1.02, .95}, {1, 9, 3, -1}, {20, 40, 15, 15}, {20, 40, 20, 19.95},
		{20, 40, 30, 10}, {0, 9, .5, .5},
		// Before the first event, the start-up may be a part of it, and it may come with the second epoch.
		{0, 9, 3, 1.95}, {0, 1, 3, .95},
	} {
		j := plannedJob{block: tc.block, epochs: tc.epochs}
		if got := j.unreported(tc.spent); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%g epochs after a block of %g: %g have passed, want %g", tc.spent, tc.block, got, tc.want)
		}
	}
}
