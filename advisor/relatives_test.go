package advisor_test

import (
	"math"
	"testing"
	"time"

	"courier/advisor"
	"courier/schemas"
)

// A model that no regressor knows takes three times as long as the one that is
// known. Before anything was seen of it the bound is wide and nothing is
// promised; after the epochs that the answer proposes it is narrow and right.
func TestDecide_LearnsAnUnknownModelFromThreeEpochs(t *testing.T) {
	const slower = 3
	r, c := regressors(t), advisor.NewCluster()
	q := request(func(q *schemas.JobRequest) { q.Model = "new"; q.SLO = schemas.Duration(10 * time.Minute) })
	now := time.Unix(1_790_000_000, 0).UTC()
	before := advisor.Decide(c.Ask(q, now), r, now)
	if before.Decision != schemas.Exploring || len(before.Relatives) != 1 || before.Relatives[0] != model {
		t.Fatalf("%s from %v, want exploring from %s", before.Decision, before.Relatives, model)
	}
	width := func(a *schemas.Advice) float64 { return *a.Chosen.UpperBoundSeconds / *a.Chosen.PredictedSeconds }
	if width(before) < 2 || !before.Chosen.Extrapolated || before.Chosen.Probability == nil {
		t.Errorf("before anything was seen: %+v, want a wide bound that promises nothing", before.Chosen)
	}
	if len(before.Probes) != 3 || before.Probes[0].BatchSize != before.Chosen.BatchSize {
		t.Fatalf("probes %+v, want three that begin with the chosen batch size %d", before.Probes, before.Chosen.BatchSize)
	}
	for i, p := range before.Probes {
		seconds := slower * trueSeconds(float64(p.BatchSize), float64(p.CPUs), 1)
		setting := schemas.Setting{Model: "new", BatchSize: p.BatchSize, CPUs: p.CPUs, Epochs: 1, Nodes: []string{"n"}}
		s := &schemas.Started{Setting: setting, NodeCores: 2}
		s.JobStamp = schemas.JobStamp{JobID: string(rune('a' + i)), Run: 1, Stamp: schemas.Stamp{At: now}}
		c.Apply(s, uint64(10*i+1), now)
		now = now.Add(time.Duration(seconds * float64(time.Second)))
		e := &schemas.Epoch{Setting: setting, Epoch: 1, DurationSeconds: seconds, JobStamp: s.JobStamp}
		c.Apply(e, uint64(10*i+2), now)
		c.Apply(&schemas.Ended{Outcome: schemas.EventFinished, EpochsDone: 1, Setting: setting, JobStamp: s.JobStamp}, uint64(10*i+3), now)
	}
	after := advisor.Decide(c.Ask(q, now), r, now)
	if width(after) > 1.3 {
		t.Errorf("after three epochs the bound is %.2f times the median, it was %.2f", width(after), width(before))
	}
	for _, alt := range after.Alternatives {
		want := 10*slower*trueSeconds(float64(alt.BatchSize), 2, 1) + trueStartup
		if math.Abs(*alt.PredictedSeconds-want) > 0.1*want || *alt.UpperBoundSeconds < want {
			t.Errorf("batch size %d: %.1f s, bound %.1f s; the truth is %.1f s", alt.BatchSize, *alt.PredictedSeconds, *alt.UpperBoundSeconds, want)
		}
	}
	if after.Decision != schemas.Exploring || len(after.Probes) != 0 {
		t.Errorf("%s with probes %+v: a regressor must know the model before anything is promised, and nothing is left to try", after.Decision, after.Probes)
	}
}

func TestDecide_ScalesARelativeByItsSamples(t *testing.T) {
	ask := func(samples uint64) float64 {
		q := &advisor.Question{Request: request(func(q *schemas.JobRequest) {
			q.Model = "new"
			q.TrainingSamples = samples
			q.SLO = schemas.Duration(time.Minute)
		}),
			Described: map[string]advisor.Description{model: {TrainingSamples: 1000}}}
		return *advisor.Decide(q, regressors(t), time.Now()).Alternatives[0].PredictedSeconds
	}
	if once, twice := ask(1000), ask(2000); math.Abs(twice/once-2) > 0.05 {
		t.Errorf("with twice the samples %.2f s become %.2f s", once, twice)
	}
}

// Probes leave room for the job itself.
func TestDecide_PlansProbesUnderTheSLO(t *testing.T) {
	for _, c := range []struct {
		slo  time.Duration
		want int
	}{{time.Hour, 3}, {9 * time.Second, 2}, {time.Second, 1}} {
		q := &advisor.Question{Request: request(func(q *schemas.JobRequest) { q.Model = "new"; q.SLO = schemas.Duration(c.slo) })}
		a := advisor.Decide(q, regressors(t), time.Now())
		if len(a.Probes) != c.want {
			t.Errorf("SLO %s: %d probes, want %d: %+v", c.slo, len(a.Probes), c.want, a.Probes)
		}
	}
}

// A job of an unknown model that runs goes on: nobody moves it to learn more.
func TestDecide_LeavesARunningUnknownModelAlone(t *testing.T) {
	self := &advisor.Member{Setting: schemas.Setting{Model: "new", BatchSize: 16, CPUs: 2, Epochs: 10, Nodes: []string{"n"}}, EpochsDone: 3}
	q := &advisor.Question{Request: request(func(q *schemas.JobRequest) { q.Model = "new"; q.SLO = schemas.Duration(8 * time.Second) }), Self: self, Nodes: []string{"n"}}
	if a := advisor.Decide(q, regressors(t), time.Now()); a.Action != schemas.ActionKeep || a.Chosen.BatchSize != 16 || len(a.Probes) != 0 || a.Chosen.PredictedSeconds == nil {
		t.Errorf("%s batch size %d, probes %v, want to keep 16 and no probes", a.Action, a.Chosen.BatchSize, a.Probes)
	}
}
