package decide_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// Whatever is displayed follows from one distribution, at submission and while a job runs: the SLO is met
// with probability one half if it is the predicted time, and with the confidence if it is the bound. The
// probability rises with the SLO and falls with the number of epochs.
func TestDecide_DisplaysOneDistribution(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnOne), time.Unix(1_790_000_000, 0).UTC()
	for _, tc := range []struct {
		name    string
		stops   []uint32 // epochs of earlier jobs, of 40
		running bool
		done    uint32
		late    time.Duration // since the last event of the job
		target  float64
	}{
		{name: "at submission"},
		{name: "at submission, where jobs stop early", stops: []uint32{12, 12, 12}},
		{name: "at submission, for a target", target: 0.7},
		{name: "before the first epoch", running: true},
		{name: "after one epoch", running: true, done: 1},
		{name: "half-way", running: true, done: 20},
		{name: "half-way, in an epoch", running: true, done: 20, late: 300 * time.Millisecond},
		{name: "an overdue epoch", running: true, done: 20, late: 4 * time.Second},
		{name: "running, where jobs stop early", stops: []uint32{12, 12, 12}, running: true, done: 8},
		{name: "in the last epoch", running: true, done: 39},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ask := func(epochs uint32, left float64) *schemas.Alternative {
				question := questionAbout(tc.stops, tc.running, tc.done, now, tc.late, func(q *schemas.JobRequest) {
					q.Epochs, q.TargetAccuracy = int(epochs), tc.target
				})
				question.Request.SLO = schemas.Duration(question.Elapsed + time.Duration(left*float64(time.Second)))
				return decide.Decide(question, r, now.Add(tc.late)).Chosen
			}
			a := ask(40, 36_000)
			if a == nil || a.PredictedSeconds == nil || a.UpperBoundSeconds == nil {
				t.Fatalf("chosen %+v, want a time and a bound", a)
			}
			median, bound := *a.PredictedSeconds, *a.UpperBoundSeconds
			at := func(epochs uint32, seconds float64) float64 {
				chosen := ask(epochs, seconds)
				if chosen == nil || chosen.Probability == nil {
					t.Fatalf("%d epochs in %g s: chosen %+v, want a probability", epochs, seconds, chosen)
				}
				return *chosen.Probability
			}
			if tc.target == 0 {
				for seconds, want := range map[float64]float64{median: 0.5, bound: schemas.DefaultConfidence} {
					if p := at(40, seconds); math.Abs(p-want) > 0.005 {
						t.Errorf("probability of %g s is %g, want %g", seconds, p, want)
					}
				}
			}
			last := 0.0
			for _, f := range []float64{0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 5} {
				p := at(40, f*median)
				if p < last {
					t.Errorf("probability falls from %g to %g at %g times the predicted time", last, p, f)
				}
				last = p
			}
			last = 1
			for epochs := uint32(40); tc.target == 0 && epochs < 60; epochs++ {
				p := at(epochs, bound)
				if p > last {
					t.Errorf("probability rises from %g to %g at %d epochs", last, p, epochs)
				}
				last = p
			}
		})
	}
}

// While nothing is reported, in the start-up or in an epoch, an SLO does not become more probable, and the bound
// comes no closer.
func TestDecide_SilenceIsNoProgress(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnOne), time.Unix(1_790_000_000, 0).UTC()
	for _, done := range []uint32{0, 20, 38, 39} {
		ask := func(late time.Duration, slo float64) *schemas.Alternative {
			question := questionAbout(nil, true, done, now, late, func(q *schemas.JobRequest) { q.Epochs = 40 })
			question.Request.SLO = schemas.Duration(question.Elapsed - late + time.Duration(slo*float64(time.Second)))
			return decide.Decide(question, r, now.Add(late)).Chosen
		}
		first := ask(0, 36_000)
		bound := *first.UpperBoundSeconds
		whole := *first.PredictedSeconds / float64(40-done)
		for share := 0.1; share < 0.9; share += 0.1 {
			late := time.Duration(share * whole * float64(time.Second))
			a, b := ask(late, bound), ask(late, 36_000)
			if p := *a.Probability; p > schemas.DefaultConfidence+0.01 {
				t.Errorf("after %d epochs and %s: probability %.3f, %.2f without the silence", done, late, p,
					schemas.DefaultConfidence)
			}
			if sum := *b.UpperBoundSeconds + late.Seconds(); sum < 0.97*bound {
				t.Errorf("after %d epochs and %s: at most %.3f s in all, %.3f before", done, late, sum, bound)
			}
		}
	}
}

// A job that has done all epochs has met its SLO or not, however long it works afterwards.
func TestDecide_WorkAfterTheLastEpochDoesNotCount(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnOne), time.Unix(1_790_000_000, 0).UTC()
	for slo, want := range map[time.Duration]schemas.Decision{
		time.Second: schemas.MeetsSLO, -time.Second: schemas.BestEffort,
	} {
		const after = 20 * time.Second
		question := questionAbout(nil, true, 10, now, after, func(q *schemas.JobRequest) { q.Epochs = 10 })
		question.Elapsed += 10 * time.Second
		question.Request.SLO = schemas.Duration(question.Elapsed - after + slo)
		if a := decide.Decide(question, r, now.Add(after)); a.Decision != want {
			t.Errorf("%s left at the end of the last epoch: %s, want %s", slo, a.Decision, want)
		}
	}
}

// questionAbout asks about a job with one batch size, of a model whose earlier jobs stopped after some of 40
// epochs.
func questionAbout(
	stops []uint32, running bool, done uint32, now time.Time, late time.Duration, change func(*schemas.JobRequest),
) *decide.Question {
	q := advisortest.Request()
	q.BatchSizes = []int{16}
	change(&q)
	c, sequence := cluster.New(), uint64(0)
	apply := func(e schemas.Event) {
		sequence++
		c.Apply(e, sequence, now)
	}
	apply(advisortest.SampleOf("node-a", advisortest.Small, func(s *schemas.Sample) { s.At = now }))
	run := func(id string, n, of uint32) {
		started := advisortest.StartedEvent(id, 1)
		started.At, started.Epochs = now, of
		apply(started)
		for i := range n {
			e := advisortest.EpochEvent(id, 1, i+1)
			e.At, e.Epochs = now, of
			apply(e)
		}
	}
	for i, n := range stops {
		id := fmt.Sprint("past-", i)
		run(id, n, 40)
		ended := advisortest.FinishedEvent(id, 1)
		ended.At, ended.Epochs, ended.EpochsDone = now, 40, n
		apply(ended)
	}
	if running {
		run("now", done, uint32(q.Epochs))
		return decide.AskRunning(c, c.Job("now"), now.Add(late))
	}
	return decide.Ask(c, q.WithDefaults(), now)
}
