package tune

import (
	"slices"
	"testing"
)

// With ASHA, the expected trials of each stage follow those that have entered the stage before, and a
// difference of a fifth plans again.
func TestNeedsPlan_WhenAStageHasAFifthMoreOrLess(t *testing.T) {
	o := recordOptions()
	o.Trials, o.Epochs, o.Algorithm = 32, 8, AlgorithmASHA
	tuning := &Tuning{o: o.withDefaults()}
	tuning.state = newState(tuning.o)
	s := tuning.state
	numbers := s.expectedTrials()
	if !slices.Equal(numbers, []int{32, 16, 8, 4}) {
		t.Fatalf("expected trials %v, want 32, 16, 8 and 4", numbers)
	}
	tuning.planned = plannedFor{numbers: numbers, continues: s.continues}
	if tuning.needsPlan(numbers) {
		t.Error("a plan is needed although nothing has changed")
	}
	for _, c := range []struct {
		entered int
		want    bool
	}{{16, false}, {18, false}, {19, false}, {20, true}} {
		s.rows[1].Trials = c.entered
		if got := tuning.needsPlan(s.expectedTrials()); got != c.want {
			t.Errorf("with %d instead of 16 trials in stage 2: a plan is needed = %t, want %t", c.entered, got, c.want)
		}
	}
	s.rows[1].Trials = 0
	for i := range 6 {
		s.trials[i].entered = 1
		s.drop(&s.trials[i], "it failed")
	}
	if numbers := s.expectedTrials(); tuning.needsPlan(numbers) || numbers[0] != 32 {
		t.Errorf("failed trials of the first stage change the expected trials: %v", numbers)
	}
	for i := 6; i < 16; i++ {
		s.drop(&s.trials[i], "it failed before it started")
	}
	if numbers := s.expectedTrials(); !tuning.needsPlan(numbers) || numbers[0] != 22 {
		t.Errorf("expected trials %v, want 22 in the first stage and a new plan", numbers)
	}
}
