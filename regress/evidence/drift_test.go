package evidence_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"courier/regress/evidence"
)

func TestDrift_IsAFoldOverPlainState(t *testing.T) {
	c := configurationOf("a", 32, "x")
	_, p := fit(t, runsOf(c, 10, 10.1, 9.9))
	var drift, stored evidence.DriftState
	random := rand.New(rand.NewPCG(1, 1))
	for i := range evidence.MaxResiduals + 30 {
		run := runsOf(c, 10*math.Exp(0.02*random.NormFloat64()+0.3*float64(i/80%2)))[0]
		run.StartedAt = time.Unix(int64(i), 0).UTC()
		r, _ := p.Residual(&run)
		drift = drift.Add(r)
		b, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		stored = evidence.DriftState{}
		if err := json.Unmarshal(b, &stored); err != nil {
			t.Fatal(err)
		}
		stored = stored.Add(r)
	}
	if !reflect.DeepEqual(drift, stored) {
		t.Error("a state that was stored after each run differs from one that was not")
	}
	if n := len(drift.Residuals); n != evidence.MaxResiduals {
		t.Errorf("%d residuals are kept, want %d", n, evidence.MaxResiduals)
	}
}

// Runs of one model, however odd and although nothing else has run since, or only a model that varies too much
// to tell, do not change the prediction of another.
func TestDrift_OneModelNeverMovesAnother(t *testing.T) {
	a, b, c := configurationOf("a", 32, "x"), configurationOf("b", 32, "x"), configurationOf("c", 32, "x")
	history := append(runsOf(a, 10, 10.1, 9.9), runsOf(b, 10, 10.1, 9.9, 10.05)...)
	history = append(history, runsOf(c, 10, 14, 8, 11)...)
	_, p := fit(t, history)
	for _, odd := range [][]float64{{600, 610}, {.16, .17, .16}, {15, 15, 15, 15, 15, 15}} {
		for _, later := range [][]evidence.Run{nil, runsOf(c, 11), runsOf(b, 10, 10, 10)} {
			var drift evidence.DriftState
			for i, run := range append(runsOf(a, odd...), later...) {
				run.StartedAt = time.Unix(int64(i), 0)
				r, _ := p.Residual(&run)
				drift = drift.Add(r)
			}
			f := drift.Factors()
			if len(f) != 1 || f[0].Covers(&b) || !f[0].Covers(&a) || math.Abs(10*f[0].Ratio/odd[0]-1) > .1 {
				t.Errorf("after runs of %g s and %d others the factors are %+v, want one of a", odd, len(later), f)
			}
		}
	}
}

// After a jump, old times of a configuration with new runs are removed. Times of another
// configuration in scope are multiplied. Other times and all accuracies stay.
func TestDrift_AdjustsRunsForAFit(t *testing.T) {
	old := curveOf("old", 32, 5, 1)
	other := curveOf("other", 64, 5, 1)
	foreign := runsOf(configurationOf("b", 32, "x"), 1, 1.01)
	history := append(foreign, old, other)
	_, p := fit(t, history)
	var drift evidence.DriftState
	at := time.Unix(1000, 0).UTC()
	for i := range 12 {
		run := curveOf(fmt.Sprint(i), 32, 5, 1)
		if run.StartedAt = at.Add(time.Duration(i) * time.Minute); i%2 == 1 {
			run = foreign[0]
			run.ID, run.StartedAt = fmt.Sprint(i), at.Add(time.Duration(i)*time.Minute)
		}
		for e := range run.Epochs {
			if run.Model == "a" {
				run.Epochs[e].Seconds *= 1.5
			}
		}
		history = append(history, run)
		r, ok := p.Residual(&run)
		if !ok {
			t.Fatal("no residual")
		}
		drift = drift.Add(r)
	}
	check := func(label string, adjusted []evidence.Run) {
		t.Helper()
		_, p := fit(t, adjusted)
		for _, test := range []struct {
			c       evidence.Configuration
			seconds float64
			runs    int
		}{{old.Configuration, 1.5, 6}, {other.Configuration, 1.5, 1}, {foreign[0].Configuration, 1, 8}} {
			got := p.Time(test.c, 1)
			off := got.Median()/test.seconds - 1
			if math.Abs(off) > 0.05 || got.Counts.Configuration != test.runs {
				t.Errorf("%s: %s %d takes %g s after %d runs, want %g after %d", label, test.c.Model,
					test.c.BatchSize, got.Median(), got.Counts.Configuration, test.seconds, test.runs)
			}
		}
		if a := p.Accuracy(old.Configuration, 5); a.Runs != 7 {
			t.Errorf("%s: accuracy rests on %d runs, want 7", label, a.Runs)
		}
	}
	check("active", drift.Adjust(p, history))
	drift = drift.Refitted()
	check("past", drift.Adjust(p, history))
	if history[2].Epochs[0].Seconds != 1 {
		t.Error("the runs themselves were changed")
	}
	for range 2 * evidence.MaxPastFactors {
		drift.Past = append(drift.Past[:min(len(drift.Past), evidence.MaxPastFactors)], drift.Past[0])
		drift = drift.Refitted()
	}
	if n := len(drift.Past); n != evidence.MaxPastFactors {
		t.Errorf("%d past factors are kept, want %d", n, evidence.MaxPastFactors)
	}
}
