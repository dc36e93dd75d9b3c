package cluster

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
		if r := none.with(&predictedRun{"a", JobKind{}, 1, 1, 0.9, measured}); r != nil {
			t.Errorf("run time %g s: got recalibration %+v, want none", measured, r)
		}
	}
	if p := none.Calibrated(0.5, 0.9); p != 0.5 {
		t.Errorf("calibrated(0.5) without a recalibration = %g, want 0.5", p)
	}
}

// The calibrated share is monotone, is 0 and 1 at the ends, and equals the confidence at the level
// that keeps it.
func TestRecalibration_CalibratedIsMonotone(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.05, 0.2} {
		r := &Recalibration{Alphas: []ConfidenceAlpha{{0.95, alpha}}}
		last := -1.0
		for s := 0.0; s <= 1; s += 1.0 / 64 {
			p := r.Calibrated(s, 0.95)
			if p < last || p < 0 || p > 1 {
				t.Fatalf("alpha %g: calibrated(%g): got %g, want 0 to 1 and at least the previous %g",
					alpha, s, p, last)
			}
			last = p
		}
		if p := r.Calibrated(1-alpha, 0.95); math.Abs(p-0.95) > 1e-12 {
			t.Errorf("alpha %g: calibrated(%g) = %g, want 0.95", alpha, 1-alpha, p)
		}
	}
}

// One kind of job takes longer than predicted, another shorter. The bounds of each kind hold with
// the confidence.
func TestRecalibration_BoundsHoldForEachKind(t *testing.T) {
	const confidence, jobs = 0.9, 6000
	random := rand.New(rand.NewPCG(5, 6))
	kinds := []JobKind{{"lenet5", "", 1}, {"lenet5", "", 8}}
	drift := []float64{0.15, -0.05}
	var r *Recalibration
	var held, count [2]int
	for n := range jobs {
		i := random.IntN(2)
		level := 1 - r.MissRate(confidence)
		quantile := 0.1 * math.Sqrt2 * math.Erfinv(2*level-1) // twice the true standard deviation
		bound := math.Exp(r.Shift(kinds[i]) + quantile)
		took := math.Exp(drift[i] + 0.05*random.NormFloat64())
		if n >= jobs/3 {
			count[i]++
			if took <= bound {
				held[i]++
			}
		}
		r = r.with(&predictedRun{"a", kinds[i], 1, bound, confidence, took})
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
		r = r.with(&predictedRun{"a", JobKind{"m", "", uint32(n)}, 1, 1.1, 0.9, 1.05})
	}
	if len(r.Kinds) != maxJobKinds {
		t.Errorf("got %d kinds in memory, want %d", len(r.Kinds), maxJobKinds)
	}
	if other, known := r.Shift(JobKind{"new", "", 1}), r.Shift(JobKind{"m", "", 1}); other <= 0 ||
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
		r = r.with(&predictedRun{"a", JobKind{}, 1, 1.2, 0.95, took})
	}
	if !r.isMiscalibrated() || r.All.N != 60 {
		t.Fatalf("after ten misses: miscalibrated %v, %g residuals; want true, 60", r.isMiscalibrated(),
			r.All.N)
	}
	if again := r.with(&predictedRun{"a", JobKind{}, 1, 1.2, 0.95, 3}); again.All.N != 61 {
		t.Errorf("with the same regressor: got %g residuals, want 61", again.All.N)
	}
	next := r.with(&predictedRun{"b", JobKind{}, 3, 3.5, 0.95, 3})
	if next.All.N != 1 || next.isMiscalibrated() {
		t.Errorf("with the next regressor: %g residuals, miscalibrated %v; want 1, false",
			next.All.N, next.isMiscalibrated())
	}
	if kept := next.with(&predictedRun{"c", JobKind{}, 3, 3.5, 0.95, 3}); kept.All.N != 2 {
		t.Errorf("calibrated, with another regressor: %g residuals, want 2",
			kept.All.N)
	}
}

// A recalibration that a question or a snapshot holds never changes.
func TestRecalibration_IsImmutable(t *testing.T) {
	late := &predictedRun{
		digest:     "a",
		kind:       JobKind{"m", "", 2},
		predicted:  1,
		bound:      1.1,
		confidence: 0.9,
		measured:   1.05,
	}
	var none *Recalibration
	held := none.with(late)
	before, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	next := held
	for range 2 * recalibrationWindow {
		next = next.with(late)
	}
	after, err := json.Marshal(held)
	if err != nil || !bytes.Equal(after, before) {
		t.Errorf("got error %v and recalibration %s, want %s", err, after, before)
	}
	if next.All.N != recalibrationWindow {
		t.Errorf("got %g residuals, want %d", next.All.N, recalibrationWindow)
	}
}
