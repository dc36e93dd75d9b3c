package decide_test

import (
	"slices"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// A user who follows the advice tries every configuration once, so that a regressor gets its
// minimum of five configurations; the first ones are far apart.
func TestDecide_ExploresUntriedConfigurations(t *testing.T) {
	state := cluster.New()
	var order []cluster.BatchAndShape
	for n := range uint32(6) {
		q := decide.Ask(state, request(func(q *schemas.JobRequest) {
			q.BatchSizes, q.CPUs = []int{4, 16, 64}, schemas.CPUs{1, 2}
		}), time.Unix(0, 0))
		chosen := decide.Decide(q, decide.Regressors{}, time.Unix(0, 0)).Chosen
		order = append(order, cluster.BatchAndShape{BatchSize: chosen.BatchSize, CPUs: chosen.CPUs})
		e := &schemas.Epoch{
			Setting: schemas.Setting{
				Model:     advisortest.Model,
				BatchSize: chosen.BatchSize,
				CPUs:      chosen.CPUs,
				Epochs:    1,
				Nodes:     []string{"n"},
			},
			Epoch:           1,
			DurationSeconds: 1,
		}
		e.JobID, e.Run = string(rune('a'+n)), 1
		state.Apply(e, uint64(n+1), time.Unix(0, 0))
	}
	if first, second := (cluster.BatchAndShape{
		BatchSize: 64,
		CPUs:      2,
	}), (cluster.BatchAndShape{BatchSize: 4, CPUs: 1}); order[0] != first || order[1] != second {
		t.Errorf("got order %v, want %v, then the opposite corner %v", order, first, second)
	}
	seen := map[cluster.BatchAndShape]bool{}
	for _, c := range order {
		if seen[c] {
			t.Errorf("exploration order %v repeats %v, want each candidate once", order, c)
		}
		seen[c] = true
	}
}

// Other models are no evidence: for a model that has never run, the answer has no figures, and chooses a
// configuration that was not tried.
func TestDecide_HasNoFiguresOfAModelThatNeverRan(t *testing.T) {
	for _, c := range []struct {
		name  string
		tried []cluster.BatchAndShape
	}{
		{"nothing was tried", nil},
		{"two of three were tried", []cluster.BatchAndShape{{BatchSize: 4, CPUs: 2}, {BatchSize: 64, CPUs: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &decide.Question{Tried: c.tried, Request: request(func(q *schemas.JobRequest) {
				q.Model, q.SLO = "new", schemas.Duration(time.Minute)
			})}
			a := decide.Decide(q, advisortest.Regressors(t), time.Unix(0, 0))
			if a.Decision != schemas.Exploring {
				t.Errorf("decision %s, want exploring", a.Decision)
			}
			for _, alt := range a.Alternatives {
				if alt.PredictedSeconds != nil ||
					alt.UpperBoundSeconds != nil ||
					alt.Probability != nil || alt.CPUSeconds != nil ||
					alt.PredictedAccuracy != nil {
					t.Errorf("alternative %+v has figures, want none", alt)
				}
			}
			chosen := cluster.BatchAndShape{BatchSize: a.Chosen.BatchSize, CPUs: a.Chosen.CPUs}
			if slices.Contains(c.tried, chosen) {
				t.Errorf("got %+v, want an untried candidate", chosen)
			}
		})
	}
}

// A running job of an unknown model keeps its batch size.
func TestDecide_KeepsARunningJobOfAnUnknownModel(t *testing.T) {
	running := schemas.Setting{
		Model:     "new",
		BatchSize: 16,
		CPUs:      2,
		Epochs:    10,
		Nodes:     []string{"n"},
	}
	q := &decide.Question{
		Request: request(func(q *schemas.JobRequest) {
			q.Model, q.SLO = "new", schemas.Duration(8*time.Second)
		}),
		Self:  &decide.Member{Setting: running, EpochsDone: 3},
		Nodes: running.Nodes,
	}
	a := decide.Decide(q, advisortest.Regressors(t), time.Unix(0, 0))
	if a.Action != schemas.ActionKeep || a.Chosen.BatchSize != 16 {
		t.Errorf("%s, batch size %d, want batch size 16", a.Action, a.Chosen.BatchSize)
	}
}
