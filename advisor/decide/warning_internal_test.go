package decide

import (
	"strings"
	"testing"

	"courier/advisor/cluster"
	"courier/schemas"
)

// A change of the batch size costs accuracy, or gains some; it never costs a negative amount.
func TestWarning_NamesTheCostOrTheGain(t *testing.T) {
	saved := 0.97
	for loss, want := range map[float64]string{
		0.0224: "and costs 0.0224 of accuracy", -0.0224: "and gains 0.0224 of accuracy",
	} {
		got := warning(&schemas.Risk{BatchSize: 16, SavedProbability: &saved, AccuracyLoss: &loss}, " and more")
		if !strings.HasSuffix(got, want) || !strings.Contains(got, "the SLO is met and more with probability") {
			t.Errorf("with a loss of %g: %q, want %q at its end", loss, got, want)
		}
	}
}

// Everybody hears of a job that will probably miss its SLO: at its start, or when that is known. If it was
// unlikely at the start, its owner hears when it is hopeless.
func TestWarn_IsNewToTheOwner(t *testing.T) {
	for _, tc := range []struct {
		start, now float64
		want       bool
	}{{.97, .6, false}, {.97, .4, true}, {.6, .4, true}, {.34, .2, false}, {.34, .01, true}, {.03, 0, false}} {
		seconds := 10.
		setting := schemas.Setting{BatchSize: 8, CPUs: 1}
		q := &Question{Request: schemas.JobRequest{Confidence: .95}, Self: &Member{Setting: setting}, WasLikely: true}
		j := &cluster.Job{ID: "j", Setting: setting, Request: &q.Request,
			Promise: &cluster.AdviceSummary{Probability: &tc.start}}
		now := schemas.Alternative{BatchSize: 8, CPUs: 1, PredictedSeconds: &seconds, Probability: &tc.now}
		r := Warn(j, q, &schemas.Advice{Confidence: .95, Chosen: &now, Alternatives: []schemas.Alternative{now}})
		if got := r != nil; got != tc.want {
			t.Errorf("probability %g at the start and %g now: warning %v, want %v", tc.start, tc.now, got, tc.want)
		}
	}
}
