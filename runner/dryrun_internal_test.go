package runner

import (
	"slices"
	"testing"
	"time"

	"courier/schemas"
)

// cpuMove returns the advice to change the CPUs of a job after an epoch.
func cpuMove(cause uint64, after uint32, m schemas.PlannedMove, with, without float64) *schemas.Advice {
	a := advised(cause, after, 16, with, without)
	a.Action, a.Move = schemas.ActionCPUs, &m
	a.Alternatives[0].CPUs, a.Chosen.CPUs = m.FromCPUs, m.ToCPUs
	return a
}

// newSharing returns the adaptation of the CPUs of a job with 1,000 epochs.
func newSharing(cpus uint32) *adaptation {
	return newAdaptation(cpuMoves, schemas.ByWeight, []int{1, 2, 4}, &schemas.Setting{
		BatchSize: 16, CPUs: cpus, Epochs: 1000,
	})
}

// A dry run is reported once, although advice to keep the CPUs comes in between, and again when it
// changes or after ten minutes.
func TestAdaptation_ReportsADryRunOnce(t *testing.T) {
	a := newSharing(2)
	start := time.Unix(1_790_000_000, 0)
	lent := schemas.PlannedMove{Purpose: schemas.MoveLent, FromCPUs: 2, ToCPUs: 1, DryRun: true}
	more := schemas.PlannedMove{Purpose: schemas.MoveAtRisk, FromCPUs: 2, ToCPUs: 4, DryRun: true}
	returned := lent
	returned.Purpose = schemas.MoveReturned
	var got []int
	for i, step := range []struct {
		move *schemas.PlannedMove // nil: keep
		at   time.Duration
	}{
		{&lent, 0}, {nil, time.Second}, {&lent, 2 * time.Second},
		{&more, 3 * time.Second}, {nil, 4 * time.Second}, {&lent, 5 * time.Second},
		{&more, 6 * time.Second}, {&returned, 7 * time.Second},
		{&lent, 9 * time.Minute}, {nil, 10 * time.Minute}, {&lent, 11 * time.Minute},
	} {
		advice := keep(uint64(i+1), 0)
		if step.move != nil {
			advice = cpuMove(uint64(i+1), 0, *step.move, 1.5, 1)
		}
		s := a.addAdvice(advice, start.Add(step.at), 0, nil)
		if s.value != 0 {
			t.Errorf("step %d changes the CPUs to %d", i, s.value)
		}
		if s.moved != nil {
			got = append(got, i)
		}
	}
	if want := []int{0, 3, 7, 10}; !slices.Equal(got, want) {
		t.Errorf("steps with a report: got %v, want %v", got, want)
	}
}

// A rejection is repeated after ten minutes, because the advisor plans the move again then.
func TestAdaptation_RepeatsARejection(t *testing.T) {
	a := newSharing(2)
	start := time.Unix(1_790_000_000, 0)
	m := schemas.PlannedMove{Purpose: schemas.MoveLeftOver, FromCPUs: 2, ToCPUs: 4}
	var got []bool
	for i, at := range []time.Duration{0, 9 * time.Minute, 11 * time.Minute} {
		s := a.addAdvice(cpuMove(uint64(i+1), 0, m, 1, 1), start.Add(at), 0, nil)
		got = append(got, s.moved != nil && s.moved.Outcome == schemas.MoveRefused)
	}
	if want := []bool{true, false, true}; !slices.Equal(got, want) {
		t.Errorf("reports of the rejection: got %v, want %v", got, want)
	}
}
