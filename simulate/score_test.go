package simulate_test

import (
	"testing"

	"courier/schemas"
	"courier/simulate"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestScoreOf(t *testing.T) {
	good, poor := simulate.Best{Feasible: true, Accuracy: 0.95}, simulate.Best{Feasible: true, Accuracy: 0.90}
	kept := func(cpus uint32, seconds, accuracy float64, best simulate.Best) simulate.JobOutcome {
		return simulate.JobOutcome{
			Decision: schemas.MeetsSLO, CPUs: cpus, Seconds: seconds, MetSLO: true, Accuracy: accuracy,
			InHindsight: best,
		}
	}
	got := simulate.ScoreOf("some", []simulate.JobOutcome{
		kept(2, 100, 0.94, good), // accuracy 0.01 too low
		kept(1, 50, 0.92, poor),  // above the best
		kept(1, 50, 0.92, simulate.Best{}),
		// a promise that no candidate could keep
		{Decision: schemas.MeetsSLO, CPUs: 4, Seconds: 25, MetSLO: false, Accuracy: 0.97},
		{Decision: schemas.BestEffort, InHindsight: good}, // a wrong refusal
		{Decision: schemas.BestEffort},
		{Decision: schemas.BestEffort},
		// no promise, no refusal
		{Decision: schemas.Exploring, CPUs: 1, Seconds: 10, MetSLO: true, InHindsight: good},
	})
	number := func(v float64) *float64 { return &v }
	want := simulate.SimulationScore{
		Rule:              "some",
		Submitted:         8,
		Accepted:          4,
		Refused:           3,
		Explored:          1,
		Kept:              3,
		KeptRatio:         number(0.75),
		KeptLow:           number(0.300642),
		KeptHigh:          number(0.954413), // Wilson's interval of 3 of 4
		WrongRefusalRatio: 1. / 8,
		AccuracyRegret:    number(0.01 / 2),
		CPUSeconds:        410,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ScoreOf (-want +got):\n%s", diff)
	}
	if empty := simulate.ScoreOf("none", nil); empty.KeptRatio != nil ||
		empty.AccuracyRegret != nil || empty.WrongRefusalRatio != 0 {
		t.Errorf("ScoreOf(nothing) = %+v, want no ratios", empty)
	}
}

// A miss counts as warned if a fifth of the SLO was left at its first warning.
func TestScoreOf_Warnings(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	watched := func(met bool, warned *float64) simulate.JobOutcome {
		return simulate.JobOutcome{
			Decision: schemas.MeetsSLO, Watched: true, MetSLO: met, SLOSeconds: 100,
			WarnedSeconds: warned,
		}
	}
	refused := watched(false, number(1))
	refused.Decision = schemas.BestEffort
	got := simulate.ScoreOf("some", []simulate.JobOutcome{
		watched(false, number(80)),  // exactly a fifth is left
		watched(false, number(81)),  // too late
		watched(false, nil),         // never
		watched(false, number(130)), // after the deadline
		watched(true, number(30)),   // a false warning
		watched(true, nil), watched(true, nil), watched(true, nil),
		refused, {Decision: schemas.MeetsSLO}, // no promise; not watched
		{Decision: schemas.Exploring, Watched: true}, // no promise either
	}).Watched
	one := 1
	low, high := schemas.Wilson(1, 4)
	want := simulate.Watched{
		Warned:            &one,
		WarnedRatio:       number(0.25),
		WarnedLow:         &low,
		WarnedHigh:        &high,
		FalseWarningRatio: number(0.125),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	unwatched := simulate.ScoreOf("other", []simulate.JobOutcome{{Decision: schemas.MeetsSLO}})
	if unwatched.Watched != (simulate.Watched{}) {
		t.Errorf("figures without a Watcher: %+v, want none", unwatched.Watched)
	}
}
