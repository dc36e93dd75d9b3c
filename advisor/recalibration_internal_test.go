package advisor

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

func TestRecalibration_IgnoresInvalidTimes(t *testing.T) {
	var none *Recalibration
	for _, measured := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if r := withOutcome(none, &predictedRun{"a", jobKind{}, 1, 1, 0.9, measured}); r != nil {
			t.Errorf("run time %g s: got recalibration %+v, want none", measured, r)
		}
	}
	if p := none.calibrated(0.5, 0.9); p != 0.5 {
		t.Errorf("calibrated(0.5) without a recalibration = %g, want 0.5", p)
	}
}

// The calibrated share is monotone, is 0 and 1 at the ends, and equals the confidence at the level
// that keeps it.
func TestRecalibration_CalibratedIsMonotone(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.05, 0.2} {
		r := &Recalibration{Alphas: []confidenceAlpha{{0.95, alpha}}}
		last := -1.0
		for s := 0.0; s <= 1; s += 1.0 / 64 {
			p := r.calibrated(s, 0.95)
			if p < last || p < 0 || p > 1 {
				t.Fatalf("alpha %g: calibrated(%g): got %g, want 0 to 1 and at least the previous %g",
					alpha, s, p, last)
			}
			last = p
		}
		if p := r.calibrated(1-alpha, 0.95); math.Abs(p-0.95) > 1e-12 {
			t.Errorf("alpha %g: calibrated(%g) = %g, want 0.95", alpha, 1-alpha, p)
		}
	}
}

// One kind of job takes longer than predicted, another shorter. The bounds of each kind hold with
// the confidence.
func TestRecalibration_BoundsHoldForEachKind(t *testing.T) {
	const confidence, jobs = 0.9, 6000
	random := rand.New(rand.NewPCG(5, 6))
	kinds := []jobKind{{"lenet5", "", 1}, {"lenet5", "", 8}}
	drift := []float64{0.15, -0.05}
	var r *Recalibration
	var held, count [2]int
	for n := range jobs {
		i := random.IntN(2)
		o := outlook{
			seconds:       1,
			spread:        spread{0.1, 30},
			recalibration: r,
			shift:         r.shift(kinds[i]),
		}
		bound, _ := o.bound(confidence)
		took := math.Exp(drift[i] + 0.05*random.NormFloat64())
		if n >= jobs/3 {
			count[i]++
			if took <= bound {
				held[i]++
			}
		}
		r = withOutcome(r, &predictedRun{"a", kinds[i], 1, bound, confidence, took})
	}
	for i := range kinds {
		if share := float64(held[i]) / float64(count[i]); math.Abs(share-confidence) > 0.03 {
			t.Errorf("kind %v: got %.3f of the bounds held, want %.2f", kinds[i], share, confidence)
		}
	}
}

// Regardless of the number of kinds of jobs, the recalibration stays small.
func TestRecalibration_IsBounded(t *testing.T) {
	var r *Recalibration
	for n := range maxJobKinds + 50 {
		r = withOutcome(r, &predictedRun{"a", jobKind{"m", "", uint32(n)}, 1, 1.1, 0.9, 1.05})
	}
	if len(r.Kinds) != maxJobKinds {
		t.Errorf("got %d kinds in memory, want %d", len(r.Kinds), maxJobKinds)
	}
	if other, known := r.shift(jobKind{"new", "", 1}), r.shift(jobKind{"m", "", 1}); other <= 0 ||
		known <= 0 {
		t.Errorf("got shifts %g and %g, want both above 0", other, known)
	}
}

// Residuals of a miscalibrated regressor are dropped when a new regressor replaces it.
func TestRecalibration_IsResetForANewRegressor(t *testing.T) {
	var r *Recalibration
	for i := range 60 {
		took := 1.0
		if i >= 50 {
			took = 3 // a change that the regressor does not know
		}
		r = withOutcome(r, &predictedRun{"a", jobKind{}, 1, 1.2, 0.95, took})
	}
	if !r.isMiscalibrated() || len(r.table()) != 60 {
		t.Fatalf("after ten misses: miscalibrated %v, %d residuals; want true, 60", r.isMiscalibrated(),
			len(r.table()))
	}
	if again := withOutcome(r, &predictedRun{"a", jobKind{}, 1, 1.2, 0.95, 3}); len(again.table()) != 61 {
		t.Errorf("with the same regressor: got %d residuals, want 61", len(again.table()))
	}
	next := withOutcome(r, &predictedRun{"b", jobKind{}, 3, 3.5, 0.95, 3})
	if len(next.table()) != 1 || next.isMiscalibrated() {
		t.Errorf("with the next regressor: %d residuals, miscalibrated %v; want 1, false",
			len(next.table()), next.isMiscalibrated())
	}
	if kept := withOutcome(next, &predictedRun{"c", jobKind{}, 3, 3.5, 0.95, 3}); len(kept.table()) != 2 {
		t.Errorf("calibrated, with another regressor: %d residuals, want 2",
			len(kept.table()))
	}
}

// The recalibration of a question or of a snapshot never changes.
func TestCluster_CopiesASharedRecalibration(t *testing.T) {
	c := NewCluster()
	late := &predictedRun{
		digest:     "a",
		kind:       jobKind{"m", "", 2},
		predicted:  1,
		bound:      1.1,
		confidence: 0.9,
		measured:   1.05,
	}
	c.addOutcome(late)
	for _, keep := range []func() *Recalibration{
		c.sharedRecalibration,
		func() *Recalibration { return c.Freeze().common.Recalibration },
	} {
		state := keep()
		before, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 * recalibrationWindow {
			c.addOutcome(late)
		}
		after, err := json.Marshal(state)
		if err != nil || !bytes.Equal(after, before) {
			t.Errorf("got error %v and recalibration %s, want %s", err, after, before)
		}
	}
	if len(c.recalibration.Recent) != recalibrationWindow || len(c.recalibration.sorted) != recalibrationWindow {
		t.Errorf("got %d recent and %d sorted residuals, want %d each",
			len(c.recalibration.Recent), len(c.recalibration.sorted),
			recalibrationWindow)
	}
}

// withOutcome returns the recalibration after a finished run, without changing r.
func withOutcome(r *Recalibration, o *predictedRun) *Recalibration {
	if !o.isFinite() {
		return r
	}
	next := r.forRegressor(o.digest).clone()
	next.add(o)
	return next
}
