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

// fittedOnWorkers is fitted on three runs with one worker of two CPUs, and three with two.
var fittedOnWorkers = advisortest.FitOnce(func() (runs []advisortest.Run) {
	for i, seconds := range []float64{10, 6} {
		workers := uint32(i + 1)
		for k := range 3 {
			of := schemas.Setting{Model: "m", CPUs: 2, Workers: workers}
			r := advisortest.Run{
				Model:     of.LearnedModel(),
				BatchSize: 64,
				CPUs:      of.Processes(),
				Load:      schemas.Load{ConcurrentJobs: 1, Processes: float64(of.Processes())},
				StartedAt: evidenceBegin.Add(time.Duration(k) * time.Hour),

				StartupSeconds: 1,
			}
			for e := range 10 {
				r.Epochs = append(r.Epochs, advisortest.Epoch{
					Seconds: seconds * (1 + 0.01*float64(k)), Accuracy: 0.5 + 0.01*float64(e),
				})
			}
			runs = append(runs, r)
		}
	}
	return runs
})

// askWorkers asks for ten epochs on one of some numbers of workers with two CPUs each.
func askWorkers(slo time.Duration, workers ...int) *decide.Question {
	return decide.Ask(cluster.New(), schemas.JobRequest{
		Model: "m", CPUs: schemas.CPUs{2}, Workers: workers, BatchSizes: []int{64}, Epochs: 10,
		SLO: schemas.Duration(slo),
	}.WithDefaults(), evidenceBegin)
}

// Each number of workers is predicted by its own runs, and one that never ran is neither predicted nor
// promised, whatever else is known about the model.
func TestDecide_PredictsWorkersByTheirOwnRuns(t *testing.T) {
	r := advisortest.Load(t, fittedOnWorkers)
	for _, c := range []struct {
		name     string
		slo      time.Duration
		workers  []int
		decision schemas.Decision
		chosen   uint32
		seconds  float64 // about
		message  string
	}{
		{"no workers", 3 * time.Minute, nil, schemas.MeetsSLO, 0, 100, "batch size 64 on 2 CPUs: "},
		{"only two meet the SLO", 80 * time.Second, []int{1, 2}, schemas.MeetsSLO, 2, 60,
			"batch size 64 on 2 workers of 2 CPUs each: "},
		{"four never ran", 80 * time.Second, []int{4, 2}, schemas.MeetsSLO, 2, 60, ""},
		{"only four", 3 * time.Minute, []int{4}, schemas.Exploring, 4, 0,
			"nothing is known yet about model m (4 workers)"},
		{"none meets the SLO, and four never ran", 20 * time.Second, []int{1, 4}, schemas.Exploring, 4, 0, ""},
	} {
		a := decide.Decide(askWorkers(c.slo, c.workers...), r, evidenceBegin)
		if a.Decision != c.decision || a.Chosen.Workers != c.chosen || !strings.HasPrefix(a.Message, c.message) {
			t.Errorf("%s: got %s, %d workers, %q, want %s, %d, %q", c.name, a.Decision, a.Chosen.Workers,
				a.Message, c.decision, c.chosen, c.message)
		}
		if s := a.Chosen.PredictedSeconds; (s == nil) != (c.seconds == 0) || s != nil && (*s < 0.95*c.seconds ||
			*s > 1.1*c.seconds) {
			t.Errorf("%s: got %v s, want about %v", c.name, s, c.seconds)
		}
		if len(a.Alternatives) != max(1, len(c.workers)) {
			t.Errorf("%s: got %d alternatives, want one for each number of workers", c.name, len(a.Alternatives))
		}
		for _, alt := range a.Alternatives {
			if alt.Workers == 4 && (alt.PredictedSeconds != nil || alt.Probability != nil) {
				t.Errorf("%s: 4 workers, which never ran, have the figures %+v", c.name, alt)
			}
			if alt.PredictedSeconds != nil && *alt.CPUSeconds < 1.9*float64(max(1, alt.Workers))**alt.PredictedSeconds {
				t.Errorf("%s: %d workers of 2 CPUs cost %v CPU seconds in %v s, want those of all workers",
					c.name, alt.Workers, *alt.CPUSeconds, *alt.PredictedSeconds)
			}
		}
	}
}

// A number of data loaders that never ran is not promised, and the answer names it.
func TestDecide_NothingIsKnownAboutOtherLoaders(t *testing.T) {
	q := askWorkers(3 * time.Minute)
	q.Request.Loaders, q.Tried = []int{4}, []cluster.BatchAndShape{{BatchSize: 64, CPUs: 2}}
	a := decide.Decide(q, advisortest.Load(t, fittedOnWorkers), evidenceBegin)
	if want := "nothing is known yet about model m (4 loaders)"; a.Decision != schemas.Exploring ||
		!strings.HasPrefix(a.Message, want) {
		t.Errorf("got %s: %q, want %s: %q", a.Decision, a.Message, schemas.Exploring, want)
	}
}

// A running job keeps its workers: it is predicted with them alone, and counts with the CPUs of all of
// them for another job on its node.
func TestDecide_RunningJobKeepsItsWorkers(t *testing.T) {
	state := cluster.New()
	started := &schemas.Started{Setting: schemas.Setting{
		Model: "m", BatchSize: 64, CPUs: 2, Workers: 2, Epochs: 10, Nodes: []string{"n"},
	}}
	started.JobID, started.Run, started.At = "a", 1, evidenceBegin
	state.Apply(started, 1, evidenceBegin)

	r := advisortest.Load(t, fittedOnWorkers)
	a := decide.Decide(decide.AskRunning(state, state.Job("a"), evidenceBegin), r, evidenceBegin)
	c := a.Chosen
	if c.Workers != 2 || c.PredictedSeconds == nil || *c.PredictedSeconds > 70 || a.Action != schemas.ActionKeep {
		t.Errorf("got %s with %+v, want to keep two workers", a.Action, c)
	}
	other := askWorkers(0)
	other = decide.AskOn(state, []string{"n"}, other.Request, evidenceBegin)
	if load := decide.Decide(other, r, evidenceBegin).Load; load.Processes != 6 {
		t.Errorf("beside 2 workers of 2 CPUs each, a job on 2 CPUs has %v processes, want 6", load.Processes)
	}
}
