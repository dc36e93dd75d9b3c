package decide_test

import (
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

func member(id string, batch, epochs uint32, nodes ...string) decide.Member {
	return decide.Member{
		JobID: id,
		Setting: schemas.Setting{
			Model:     advisortest.Model,
			BatchSize: batch,
			CPUs:      2,
			Epochs:    epochs,
			Nodes:     nodes,
		},
		Confidence: 0.95,
		EpochsDone: 1,
	}
}

// With one co-located job an epoch takes twice as long (TrueSeconds), so that the forecasts can be
// computed by hand. A start-up takes 0.1 s, an epoch with batch size 16 on two CPUs 0.75 s.
func TestDecide_SimulatesCoLocatedJobs(t *testing.T) {
	r := advisortest.Regressors(t)
	only16 := func(q *schemas.JobRequest) {
		q.BatchSizes, q.SLO = []int{16}, schemas.Duration(time.Minute)
	}
	for _, c := range []struct {
		name   string
		others []decide.Member
		want   float64 // seconds for 10 epochs
	}{
		{"no other job", nil, 0.1 + 7.5},
		{"one job that does not end", []decide.Member{member("a", 16, 101, "n")}, 0.1 + 15},
		// The other job has 2 epochs left at 1.5 s: 3 s after the start of both. Until
		// then the job completes 2.9/1.5 epochs in 2.9 s; the others run without it.
		{
			"beside one that leaves", []decide.Member{member("a", 16, 3, "n")},
			3 - 0.05 + (10-2.9/1.5)*0.75,
		},
		{"beside one on another node", []decide.Member{member("a", 16, 101, "m")}, 0.1 + 7.5},
		{"beside one whose epoch is nearly over", []decide.Member{func() decide.Member {
			m := member("a", 16, 2, "n")
			m.Since = 1350 * time.Millisecond
			return m
		}()}, 0.1 + 7.5 + 0.06},
	} {
		q := &decide.Question{Request: request(only16), Nodes: []string{"n"}, Others: c.others}
		if got := *decide.Decide(q, r, time.Now()).Chosen.PredictedSeconds; math.Abs(got-c.want) > 0.02*c.want {
			t.Errorf("%s: %.2f s, want %.2f s", c.name, got, c.want)
		}
	}
}

// A job of an unknown model never ends.
func TestDecide_UnknownJobNeverEnds(t *testing.T) {
	stranger := member("a", 16, 2, "n")
	stranger.Setting.Model = "unknown"
	q := &decide.Question{
		Request: request(slo(time.Minute)),
		Nodes:   []string{"n"},
		Others:  []decide.Member{stranger},
	}
	a := decide.Decide(q, advisortest.Regressors(t), time.Now())
	if got := *a.Alternatives[1].PredictedSeconds; math.Abs(got-15.1) > 0.3 {
		t.Errorf("co-located with an unknown model, batch size 16 takes %.2f s, want 15.1 s", got)
	}
	if len(a.Effects) != 0 {
		t.Errorf("effects on a job of an unknown model: %+v, want none", a.Effects)
	}
}

// With a target accuracy the fewest epochs that reach it are chosen. Without one, as many as
// increase the accuracy within the SLO.
func TestDecide_ChoosesEpochs(t *testing.T) {
	r := advisortest.Regressors(t)
	free := func(d time.Duration, target float64) func(*schemas.JobRequest) {
		return func(q *schemas.JobRequest) {
			q.Epochs, q.MaxEpochs, q.TargetAccuracy, q.SLO = 0, 10, target, schemas.Duration(d)
		}
	}
	for _, c := range []struct {
		name     string
		change   func(*schemas.JobRequest)
		decision schemas.Decision
		batch    uint32
		epochs   uint32
	}{
		{"time for everything", free(time.Minute, 0), schemas.MeetsSLO, 4, 10},
		// Batch size 16 reaches it after 7 epochs; 64 never does.
		{
			"the faster batch size never reaches it", free(time.Minute, 0.93), schemas.MeetsSLO, 16, 7,
		},
		{"only the small batch reaches it", free(time.Minute, 0.965), schemas.MeetsSLO, 4, 9},
		{"no batch reaches it", free(time.Minute, 0.99), schemas.BestEffort, 4, 10},
		{"time for some epochs", free(4*time.Second, 0), schemas.MeetsSLO, 64, 6},
	} {
		a := decide.Decide(&decide.Question{
			Request: request(c.change),
			Nodes:   []string{"n"},
		}, r, time.Now())
		if a.Decision != c.decision || a.Chosen.BatchSize != c.batch ||
			a.Chosen.Epochs != c.epochs {
			t.Errorf(
				"%s: %s batch %d, %d epochs (accuracy %.3f in %.2f s), want %s batch %d, %d epochs",
				c.name, a.Decision, a.Chosen.BatchSize, a.Chosen.Epochs,
				*a.Chosen.PredictedAccuracy, *a.Chosen.PredictedSeconds,
				c.decision, c.batch, c.epochs,
			)
		}
	}
}
