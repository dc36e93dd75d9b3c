package tune_test

import (
	"math"
	"testing"

	"courier/tune"
)

func TestTuningProgress_Text(t *testing.T) {
	for want, p := range map[string]tune.TuningProgress{
		"stage 1 of 3, running 1 (0/2)": {Stage: 1, Stages: 3, Running: "1 (0/2)", BoundSeconds: math.Inf(1)},
		"stage 2 of 3, best loss 0.5 (trial 4), 13 s, 0.1 core-hours left, end in at most 59 s": {
			Stage: 2, Stages: 3, Best: 4, BestText: "loss 0.5", SecondsLeft: 12.6, CostLeft: "0.1 core-hours",
			BoundSeconds: 59.2,
		},
	} {
		if got := p.Text(); got != want {
			t.Errorf("Text() = %q, want %q", got, want)
		}
	}
}
