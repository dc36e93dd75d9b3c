package simulate

import (
	"errors"
	"strings"
	"testing"

	"courier/schemas"
)

// A warm-up that would take too long is refused.
func TestWorld_RefusesALongWarmUp(t *testing.T) {
	w := DefaultWorld()
	for i := range w.Families {
		w.Families[i].Epochs, w.Families[i].EpochSeconds.Constant = []int{1000}, 9
	}
	w.SLO = SLORange{LeastRatio: 0.1, MostRatio: 0.2}
	var wrong *schemas.Error
	if err := w.validate(); !errors.As(err, &wrong) || wrong.Field != "warm_up.jobs_at_once" {
		t.Errorf("a warm-up of 10^9 s: %v, want invalid: warm_up.jobs_at_once", err)
	}
	w = DefaultWorld()
	for range 5 {
		w.Families = append(w.Families, w.Families...)
	}
	for i := range w.Families {
		w.Families[i].BatchSizes = []int{
			8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
		}
	}
	if err := w.validateWarmUp(); !errors.As(err, &wrong) || wrong.Field != "warm_up.jobs_at_once" {
		t.Errorf("a warm-up of 24,576 runs: %v, want invalid: warm_up.jobs_at_once", err)
	}
}

// A world whose jobs never end is an error, not an endless simulation.
func TestPlay_EndsInAnOverloadedWorld(t *testing.T) {
	w := DefaultWorld()
	w.Families = w.Families[:1]
	f := &w.Families[0]
	f.Epochs, f.EpochSeconds = []int{1000}, TimeLaw{Constant: 9}
	w.Drift = []NodeDrift{{AfterSeconds: 0, Factor: 100}, {AfterSeconds: 0, Factor: 2}}
	_, err := (&Scenario{World: w, Jobs: w.Jobs(2, 0.9, 1)}).Play(t.Context(), newRule(RuleLargest, 1), nil)
	if err == nil || !strings.Contains(err.Error(), "overloaded") {
		t.Errorf("Play = %v, want an error about an overloaded world", err)
	}
}
