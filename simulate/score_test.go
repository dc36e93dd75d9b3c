package simulate_test

import (
	"testing"

	"courier/schemas"
	"courier/simulate"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestScoreOf(t *testing.T) {
	good, poor := simulate.Best{
		Feasible: true,
		Accuracy: 0.95,
	}, simulate.Best{Feasible: true, Accuracy: 0.90}
	got := simulate.ScoreOf("some", []simulate.JobOutcome{
		// accuracy 0.01 too low; above the best in hindsight
		{
			Decision:    schemas.MeetsSLO,
			CPUs:        2,
			Seconds:     100,
			MetSLO:      true,
			Accuracy:    0.94,
			AtOnce:      good,
			InHindsight: poor,
		},
		{
			Decision:    schemas.MeetsSLO,
			CPUs:        1,
			Seconds:     50,
			MetSLO:      true,
			Accuracy:    0.90,
			AtOnce:      poor,
			InHindsight: poor,
		},
		// accuracy 0.03 too low
		{
			Decision: schemas.MeetsSLO,
			CPUs:     1,
			Seconds:  50,
			MetSLO:   true,
			Accuracy: 0.92,
			AtOnce:   good,
		},
		// a promise that no candidate could keep
		{Decision: schemas.MeetsSLO, CPUs: 4, Seconds: 25, MetSLO: false, Accuracy: 0.97},
		{Decision: schemas.BestEffort, AtOnce: good}, // a wrong refusal at submission, but not in hindsight
		{Decision: schemas.BestEffort, AtOnce: good, InHindsight: good},
		{Decision: schemas.BestEffort},
		// no promise, no refusal
		{Decision: schemas.Exploring, CPUs: 1, Seconds: 10, MetSLO: true, AtOnce: good},
	})
	number := func(v float64) *float64 { return &v }
	want := simulate.SimulationScore{
		Rule:                    "some",
		Submitted:               8,
		Accepted:                4,
		Refused:                 3,
		Explored:                1,
		Kept:                    3,
		KeptRatio:               number(0.75),
		KeptLow:                 number(0.300642),
		KeptHigh:                number(0.954413), // Wilson's interval of 3 of 4
		WrongRefusalAtOnceRatio: 2. / 8,
		WrongRefusalRatio:       1. / 8,
		FeasibleAtOnceRatio:     6. / 8,
		FeasibleRatio:           3. / 8,
		AccuracyRegretAtOnce:    number(0.04 / 3),
		AccuracyRegret:          number(0),
		CPUSeconds:              410,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("ScoreOf (-want +got):\n%s", diff)
	}
	if empty := simulate.ScoreOf("none", nil); empty.KeptRatio != nil ||
		empty.AccuracyRegretAtOnce != nil || empty.WrongRefusalAtOnceRatio != 0 {
		t.Errorf("ScoreOf(nothing) = %+v, want no ratios", empty)
	}
}
