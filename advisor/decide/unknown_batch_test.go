package decide_test

import (
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

var fittedByUnknown = advisortest.FitOnce(func() []advisortest.Run {
	return evidenceRuns(func(_ int, r *advisortest.Run) { r.BatchSize = 0 })[:4]
})

// Runs with an unknown batch size predict further ones, but none with a known batch size, and those do
// not predict a run with an unknown one.
func TestDecide_UnknownBatchSize(t *testing.T) {
	unknown, known := advisortest.Load(t, fittedByUnknown), evidenceRegressors(t)
	for _, test := range []struct {
		name       string
		regressors decide.Regressors
		batchSizes []int
		isPromised bool
	}{
		{"unknown by unknown", unknown, []int{0}, true},
		{"default sizes by unknown", unknown, nil, false},
		{"its nominal size by unknown", unknown, []int{64}, false},
		{"unknown by known", known, []int{0}, false},
		{"known by known", known, []int{64}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := evidenceQuestion(func(q *schemas.JobRequest) {
				q.BatchSizes, q.SLO = test.batchSizes, schemas.Duration(time.Hour)
			})
			a := decide.Decide(q, test.regressors, evidenceBegin)
			if (a.Decision == schemas.MeetsSLO) != test.isPromised {
				t.Errorf("got %s: %s, want a promise: %t", a.Decision, a.Message, test.isPromised)
			}
			for _, alt := range a.Alternatives {
				if (alt.Probability != nil) != test.isPromised {
					t.Errorf("batch size %d: probability %v, want one: %t", alt.BatchSize, alt.Probability,
						test.isPromised)
				}
			}
			isUnknown := len(test.batchSizes) == 1 && test.batchSizes[0] == 0
			if strings.Contains(a.Message, "unknown batch size") != isUnknown {
				t.Errorf("message %q", a.Message)
			}
		})
	}
}

// A batch size that an earlier job of the command measured is that of the next one, until a job does not
// measure it. The first job has the first number of loaders, the next one that of the last epoch.
func TestAsk_TakesTheMeasuredBatchSize(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	c := cluster.New()
	q := schemas.JobRequest{
		Model: "own", CPUs: schemas.CPUs{1}, BatchSizes: []int{0}, Epochs: 2, SLO: schemas.Duration(time.Minute),
		Nodes: []string{"n"}, Loaders: []int{4, 2, 0},
	}
	if first := decide.Ask(c, q.WithDefaults(), at).Request.FirstLoaders(); first != 4 {
		t.Errorf("the first job has %d loaders, want 4", first)
	}
	for i, measured := range []uint32{0, 96, 0} {
		q.JobID = string(rune('a' + i))
		stamp := func(id string, run uint32) schemas.JobStamp {
			return schemas.JobStamp{Stamp: schemas.Stamp{EventID: q.JobID + id, At: at}, JobID: q.JobID, Run: run}
		}
		set := schemas.Setting{Model: "own", CPUs: 1, Epochs: 2, Nodes: q.Nodes, Loaders: uint32(2 * (i % 2))}
		sequence := uint64(10 * (i + 1))
		apply := func(e schemas.Event) {
			sequence++
			c.Apply(e, sequence, at)
		}
		chosen := schemas.Alternative{CPUs: 1, Epochs: 2}
		apply(&schemas.Submitted{JobStamp: stamp("/submitted", 0), Request: q.WithDefaults(),
			Advice: schemas.Advice{Model: "own", Chosen: &chosen}})
		apply(&schemas.Started{JobStamp: stamp("/1/started", 1), Setting: set})
		set.BatchSize = measured
		apply(&schemas.Epoch{JobStamp: stamp("/1/1", 1), Setting: set, Epoch: 1, DurationSeconds: 1,
			DurationSource: schemas.DurationReported})

		running := decide.AskRunning(c, c.Job(q.JobID), at)
		next := decide.Ask(c, q.WithDefaults(), at)
		for _, got := range []*decide.Question{running, next} {
			if sizes := got.Request.BatchSizes; len(sizes) != 1 || sizes[0] != int(measured) {
				t.Errorf("job %d: asks for %v, want %d", i, sizes, measured)
			}
			if n := got.Request.FirstLoaders(); n != set.Loaders {
				t.Errorf("job %d: asks for %d loaders, want %d", i, n, set.Loaders)
			}
		}
	}
}
