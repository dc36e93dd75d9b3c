package decide_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// fittedWithForeignLoad is the fixture with epochs whose time is multiplied by 1 + foreign load, for
// loads of 0, 0.2 and 0.5 of the CPUs.
var fittedWithForeignLoad = advisortest.FitOnce(func() (all []advisortest.Run) {
	for _, hog := range []float64{0, 0.2, 0.5} {
		for _, r := range advisortest.FixtureRuns(advisortest.TwoProcessors) {
			r.Load.ForeignCPURatio = schemas.RatioOf(hog)
			for i := range r.Epochs {
				r.Epochs[i].Seconds *= 1 + hog
			}
			all = append(all, r)
		}
	}
	return all
})

func ratio(v float64) *float64 { return &v }

// busySample is a sample of five seconds of a node with two CPUs.
func busySample(node string, cpu, ioWait *float64, at time.Time) *schemas.Sample {
	return advisortest.SampleOf(node, advisortest.TwoProcessors, func(s *schemas.Sample) {
		s.At, s.IntervalSeconds, s.SpeedOperationsPerSecond = at, 5, nil
		s.CPURatio, s.IOWaitRatio = cpu, ioWait
	})
}

// applySamples applies samples of a node at intervals of five seconds; the last is at the given
// time.
func applySamples(c *cluster.Cluster, node string, samples int, cpu, ioWait *float64, last time.Time) {
	for i := range samples {
		at := last.Add(time.Duration(i+1-samples) * 5 * time.Second)
		c.Apply(busySample(node, cpu, ioWait, at), uint64(i+1), at)
	}
}

func TestDecide_UsesTheForeignLoad(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	hogs, old := advisortest.Load(t, fittedWithForeignLoad), advisortest.Regressors(t)
	alone := advisortest.TrueStartup + 10*advisortest.TrueSeconds(16, 2, 1)
	beside := func(hog float64) float64 {
		return advisortest.TrueStartup + 10*advisortest.TrueSeconds(16, 2, 1)*(1+hog)
	}
	for _, c := range []struct {
		name       string
		r          decide.Regressors
		cpu        *float64
		want       float64 // seconds
		ratio      schemas.Ratio
		addPromise bool
	}{
		{"an idle node", hogs, ratio(0.01), alone, schemas.RatioOf(0), true},
		{"a hog of one of its two processors", hogs, ratio(0.5), beside(0.5),
			schemas.RatioOf(0.5), true},
		{"a hog of more than was measured", hogs, ratio(0.9), 0, schemas.RatioOf(0.9), false},
		{"unknown: the typical load", hogs, nil, beside(0.2), schemas.Ratio{}, true},
		{"a regressor without the column", old, ratio(0.5), alone, schemas.RatioOf(0.5), true},
	} {
		state := cluster.New()
		applySamples(state, "n", 12, c.cpu, nil, now)
		a := askOn(c.r, state, now, "n")
		if got := *a.Chosen.PredictedSeconds; c.want > 0 && math.Abs(got/c.want-1) > 0.05 {
			t.Errorf("%s: predicted %.2f s, want about %.2f", c.name, got, c.want)
		}
		if a.Load.ForeignCPURatio != c.ratio {
			t.Errorf("%s: the advice assumes %+v, want %+v",
				c.name, a.Load.ForeignCPURatio, c.ratio)
		}
		if promised := a.Chosen.UpperBoundSeconds != nil; promised != c.addPromise {
			t.Errorf("%s: promised %t, want %t", c.name, promised, c.addPromise)
		}
	}
}

func TestAsk_ReadsTheForeignLoadFromSamples(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	started := func(job string, ago time.Duration) func(*cluster.Cluster) {
		return func(c *cluster.Cluster) {
			e := advisortest.StartedEvent(job, 1)
			e.At, e.Setting.Nodes = now.Add(-ago), []string{"n"}
			c.Apply(e, 1, e.At)
		}
	}
	for _, c := range []struct {
		name     string
		baseline func(*cluster.Cluster)
		cpu      *float64
		ioWait   *float64
		after    time.Duration // from the last sample to the question
		want     schemas.Foreign
	}{
		{"nothing is told", nil, nil, nil, 0, schemas.Foreign{}},
		{"a hog and a busy disk", nil, ratio(0.3), ratio(0.2), 0,
			schemas.Foreign{CPU: schemas.RatioOf(0.3), IOWait: schemas.RatioOf(0.2)}},
		{"the last sample is a minute old", nil, ratio(0.3), ratio(0.2), 61 * time.Second,
			schemas.Foreign{}},
		{"a known job explains it", started("a", time.Hour/2), ratio(1), nil, 0,
			schemas.Foreign{CPU: schemas.RatioOf(0)}},
		{"a job has just come", started("a", 0), ratio(1), nil, 0, schemas.Foreign{}},
	} {
		state := cluster.New()
		if c.baseline != nil {
			c.baseline(state)
		}
		applySamples(state, "n", 12, c.cpu, c.ioWait, now)
		q := decide.Ask(state, schemas.JobRequest{Nodes: []string{"n"}}, now.Add(c.after))
		if q.Foreign[0] != c.want {
			t.Errorf("%s: got foreign load %+v, want %+v", c.name, q.Foreign[0], c.want)
		}
	}

	late := cluster.New() // receives samples of a spool late
	late.Apply(busySample("n", ratio(0.9), nil, now.Add(-time.Hour)), 1, now)
	q := decide.Ask(late, schemas.JobRequest{Nodes: []string{"n"}}, now)
	if q.Foreign[0] != (schemas.Foreign{}) {
		t.Errorf("got load %+v after a sample from an hour ago, want it unchanged", q.Foreign[0])
	}
}

// Epochs report the foreign load of a node without samples. A job that keeps fewer CPUs busy than
// it has processes leaves the rest to other jobs.
func TestAsk_ReadsTheForeignLoadFromEpochs(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	state := cluster.New()
	start := advisortest.StartedEvent("a", 1)
	start.At, start.Setting.Nodes = now.Add(-10*time.Second), []string{"n"}
	state.Apply(start, 1, start.At)
	e := advisortest.EpochEvent("a", 1, 1)
	e.At, e.Setting.Nodes, e.DurationSeconds = now, []string{"n"}, 9.5
	e.NodeCPURatio, e.JobCPUSeconds = ratio(0.8), ratio(6) // the job uses 0.6 of the 1.6 busy CPUs
	j := state.Apply(e, 2, now)

	want := schemas.RatioOf(0.5)
	if q := decide.Ask(state, schemas.JobRequest{Nodes: []string{"n"}}, now); q.Foreign[0].CPU != want {
		t.Errorf("foreign load for a new job: %+v, want %+v", q.Foreign[0].CPU, want)
	}
	if q := decide.AskRunning(state, j, now); q.Foreign[0].CPU != want || q.Self.Foreign[0].CPU != want {
		t.Errorf("foreign load for the job itself: %+v, %+v, want %+v",
			q.Foreign[0], q.Self.Foreign[0], want)
	}
	now = now.Add(6 * time.Second)
	state.Apply(busySample("n", ratio(0.8), nil, now), 3, now)
	if q := decide.Ask(state, schemas.JobRequest{Nodes: []string{"n"}}, now); q.Foreign[0].CPU != want {
		t.Errorf("foreign load after an equal sample: %+v, want %+v", q.Foreign[0].CPU, want)
	}
}

func TestAsk_PlacesAJobOnTheNodeWithLessForeignLoad(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	state := cluster.New()
	applySamples(state, "a", 3, ratio(0.8), nil, now)
	applySamples(state, "b", 3, ratio(0.1), nil, now)
	q := decide.Ask(state, schemas.JobRequest{Model: advisortest.Model, CPUs: schemas.CPUs{1}}, now)
	if fmt.Sprint(q.Nodes) != "[b]" {
		t.Errorf("placed on %v, want the node without foreign load", q.Nodes)
	}
}

// Foreign work that starts while a job runs lengthens the remaining time after one epoch, and is
// the cause of the risk. The risk is cleared after the foreign work has ended.
func TestWatch_NewForeignLoadPutsAPromiseAtRisk(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	r, state, sequence := advisortest.Load(t, fittedWithForeignLoad), cluster.New(), uint64(100)
	applySamples(state, "node-a", 12, ratio(0), nil, now)
	q := schemas.JobRequest{
		JobID: "a", Model: advisortest.Model, CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 10,
		SLO: schemas.Duration(9 * time.Second), Confidence: 0.9, Nodes: advisortest.Running.Nodes,
	}.WithDefaults()
	submitted := &schemas.Submitted{Request: q, Advice: *decide.Decide(decide.Ask(state, q, now), r, now)}
	submitted.JobID, submitted.At = "a", now
	if submitted.Advice.Decision != schemas.MeetsSLO {
		t.Fatalf("got no promise, want one: %s", submitted.Advice.Message)
	}
	var risks []*schemas.Risk
	apply := func(e schemas.Event) *cluster.Job {
		sequence++
		j := state.Apply(e, sequence, now)
		risks = decide.Watch(state, e, j, sequence, r, now)
		return j
	}
	epoch := func(number uint32, hog float64) *schemas.Advice {
		seconds := advisortest.TrueSeconds(16, 2, 1) * (1 + hog)
		now = now.Add(time.Duration(seconds * float64(time.Second)))
		e := advisortest.EpochEvent("a", 1, number)
		e.At, e.DurationSeconds = now, seconds
		e.NodeCPURatio, e.JobCPUSeconds = ratio(1), ratio(2*seconds/(1+hog))
		return decide.Decide(decide.AskRunning(state, apply(e), now), r, now)
	}
	apply(submitted)
	start := advisortest.StartedEvent("a", 1)
	start.At = now
	apply(start)

	if epoch(1, 0); len(risks) != 0 {
		t.Fatalf("got a risk without foreign load, want none: %s", risks[0].Message)
	}
	a := epoch(2, 0.5)
	want := 8 * advisortest.TrueSeconds(16, 2, 1) * 1.5
	if got := *a.Chosen.PredictedSeconds; math.Abs(got/want-1) > 0.05 {
		t.Errorf("%.2f s left with foreign load, want about %.2f", got, want)
	}
	if math.Abs(a.EpochRatio-1) > 0.05 {
		t.Errorf("ratio of measured to predicted epochs: got %.2f, want 1", a.EpochRatio)
	}
	if len(risks) != 1 || risks[0].Cause != schemas.CauseForeign || risks[0].Cleared {
		t.Fatalf("got risks %+v, want one with the cause foreign load", risks)
	}
	if epoch(3, 0); len(risks) != 1 || !risks[0].Cleared {
		t.Errorf("got risks %+v, want an all-clear", risks)
	}
}

// A replay uses the foreign load of the recorded answer, regardless of samples.
func TestRecall_UsesTheRecordedForeignLoad(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	r, state := advisortest.Load(t, fittedWithForeignLoad), cluster.New()
	applySamples(state, "n", 12, ratio(0.2), nil, now)
	recorded := &schemas.Submitted{Advice: *askOn(r, state, now, "n")}
	recorded.Request = schemas.JobRequest{
		JobID: "asked", Model: advisortest.Model, CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 10,
		SLO: schemas.Duration(time.Hour), Confidence: 0.9, Nodes: []string{"n"},
	}.WithDefaults()
	applySamples(state, "n", 12, ratio(0.5), nil, now.Add(time.Minute))

	again := decide.Decide(decide.Recall(state, recorded), r, now)
	got, want := *again.Chosen.PredictedSeconds, *recorded.Advice.Chosen.PredictedSeconds
	if again.Load != recorded.Advice.Load || got != want {
		t.Errorf("recalled load %+v, %.3f s, want %+v, %.3f s",
			again.Load, got, recorded.Advice.Load, want)
	}
}

// With evidence regressors, too, a job takes longer at a known foreign load, and an unknown load
// makes its time less certain. Nothing is promised outside the measured loads.
func TestDecide_ByEvidenceWithForeignLoad(t *testing.T) {
	const slower = 1.5 // factor of the time at a foreign load of 0.5
	r := advisortest.Load(t, advisortest.FitOnce(func() []advisortest.Run {
		return evidenceRuns(func(n int, r *advisortest.Run) {
			r.Load.ForeignCPURatio = schemas.RatioOf(0)
			if n%4 > 0 {
				return
			}
			r.Load.ForeignCPURatio = schemas.RatioOf(0.5)
			for i := range r.Epochs {
				r.Epochs[i].Seconds *= slower
			}
		})
	}))
	ask := func(cpu schemas.Ratio) schemas.Alternative {
		q := evidenceQuestion(func(q *schemas.JobRequest) {
			q.BatchSizes, q.SLO = []int{64}, schemas.Duration(24*time.Hour)
		})
		q.Foreign = []schemas.Foreign{{CPU: cpu}}
		return decide.Decide(q, r, evidenceBegin).Alternatives[0]
	}

	calm, busy := ask(schemas.RatioOf(0)), ask(schemas.RatioOf(0.5))
	unknown, beyond := ask(schemas.Ratio{}), ask(schemas.RatioOf(0.9))
	if ratio := *busy.PredictedSeconds / *calm.PredictedSeconds; math.Abs(ratio/slower-1) > 0.05 {
		t.Errorf("ratio of times with and without foreign load: got %.2f, want %g", ratio, slower)
	}
	if *unknown.PredictedSeconds != *calm.PredictedSeconds {
		t.Errorf("time with an unknown load: got %.1f s, want %.1f s as with the typical load",
			*unknown.PredictedSeconds, *calm.PredictedSeconds)
	}
	if bound := *unknown.UpperBoundSeconds; bound < 0.95**busy.PredictedSeconds {
		t.Errorf("bound with an unknown load: got %.1f s, want at least %.1f s as for the highest load",
			bound, *busy.PredictedSeconds)
	}
	for _, alt := range []*schemas.Alternative{&calm, &busy, &unknown} {
		if alt.Extrapolated {
			t.Errorf("evidence at a measured load = %+v, want no extrapolation", alt.Evidence.Time)
		}
	}
	if !beyond.Extrapolated || !strings.Contains(beyond.Reason, "load") {
		t.Errorf("above the measured loads: extrapolated = %v, %q; want an extrapolation of the load",
			beyond.Extrapolated, beyond.Reason)
	}
}
