package trainer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/trainer"
)

// jobSeries publishes sequential jobs on several nodes.
type jobSeries struct {
	bus    *bus.Bus
	random *rand.Rand
	factor map[string]float64 // of times, by node; absent means 1
	cores  map[string]uint32
	nodes  []string
	rich   bool // fifteen configurations instead of six, and one epoch per job instead of three
	s      float64
	jobs   int
}

func newFleet(b *bus.Bus, nodes ...string) *jobSeries {
	return &jobSeries{
		bus:    b,
		random: rand.New(rand.NewPCG(1, 1)),
		factor: map[string]float64{},
		cores:  map[string]uint32{},
		nodes:  nodes,
	}
}

// run publishes jobs of three epochs. Their configurations and nodes alternate.
func (f *jobSeries) run(t testing.TB, jobs int) {
	t.Helper()
	publish := func(e schemas.Event) {
		if _, err := f.bus.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	for range jobs {
		set := setting([]uint32{4, 16, 64}[f.random.IntN(3)], uint32(1+f.random.IntN(2)))
		if f.rich {
			set = setting([]uint32{
				4, 8, 16, 32, 64,
			}[f.random.IntN(5)], []uint32{1, 2, 4}[f.random.IntN(3)])
		}
		node := f.nodes[f.jobs%len(f.nodes)]
		set.Nodes = []string{node}
		seconds := (1 + 8/float64(set.BatchSize)) / float64(set.CPUs) * math.Exp(
			0.05*f.random.NormFloat64(),
		)
		if factor := f.factor[node]; factor > 0 {
			seconds *= factor
		}
		job := fmt.Sprint("fleet-", f.jobs)
		f.jobs++
		begin := started(job, 1, f.s, set)
		if cores := f.cores[node]; cores > 0 {
			begin.NodeCores = cores
		}
		publish(begin)
		first := f.s
		epochs := uint32(3)
		if f.rich {
			epochs = 1
		}
		for n := range epochs {
			f.s += seconds
			e := epochEvent(job, 1, n+1, f.s, seconds, set)
			e.NodeCores = begin.NodeCores
			publish(e)
		}
		publish(ended(job, 1, schemas.EventFinished, f.s, f.s-first, set))
		f.s++
	}
}

// awaitDrift skips some drifts and returns the next one.
func awaitDrift(t testing.TB, b *bus.Bus, after int) *schemas.Drift {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var drift *schemas.Drift
	err := b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamRegressor}, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Drift); ok {
			if after == 0 && drift == nil {
				drift = e
				cancel()
			}
			after--
		}
		return nil
	})
	if err != nil || drift == nil {
		t.Fatalf("no drift: %v", err)
	}
	return drift
}

// A node becomes slower: the drift names it, the trainer fits, and predicts the slower times of
// that node's jobs no worse than before.
func TestTrainer_NamesASlowNodeAndFits(t *testing.T) {
	b := bustest.New(t)
	f := newFleet(b, "a", "b", "c")
	f.run(t, 60)
	runTrainer(t, b, nil, trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Millisecond})
	train(t, b)
	f.run(t, 9) // without a change
	slowed := at(f.s)
	f.factor["b"], f.cores["b"] = 1.3, 1
	f.run(t, 30)
	e := awaitDrift(t, b, 0)
	if e.Scope != schemas.DriftNode || e.Node != "b" || math.Abs(e.Ratio/1.3-1) > 0.1 ||
		e.RestRatio == nil || math.Abs(*e.RestRatio-1) > 0.06 {
		t.Errorf("drift %+v, want node b at 1.3", e)
	}
	if late := e.SinceAt.Sub(slowed).Seconds(); late < -20 || late > 40 {
		t.Errorf("drift since %v, %.0f s after the change, want -20 to 40 s", e.SinceAt, late)
	}
	if e.CauseSequence == 0 || e.ModelDigest == "" || !strings.Contains(e.Message,
		"jobs on node b take 1.") {
		t.Errorf("drift lacks evidence: %+v", e)
	}
	if got := strings.Join(e.KnownChanges, "; "); got != "node b has 1 cores instead of 2" {
		t.Errorf("known changes %q, want the lost core", got)
	}
	awaitTrained(t, b, "drift: jobs on node b")
}

// Imported old runs are no evidence of drift, regardless of their speed and of the
// hardware of their node, even if the champion was fitted on older runs only.
func TestTrainer_ImportedRunsAreNoDrift(t *testing.T) {
	b := bustest.New(t)
	f := newFleet(b, "a", "b", "c")
	f.s = -1e6
	f.run(t, 60)
	runTrainer(t, b, nil, trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Millisecond})
	train(t, b)
	f.s = 0
	f.run(t, 9)
	past := newFleet(b, "a", "b", "c")
	past.jobs, past.s = 1000, -1e5
	for _, n := range past.nodes {
		past.factor[n], past.cores[n] = 3, 1
	}
	past.run(t, 60)
	f.factor["b"], f.cores["b"] = 1.3, 1
	f.run(t, 30)
	e := awaitDrift(t, b, 0)
	if e.Scope != schemas.DriftNode || e.Node != "b" || math.Abs(e.Ratio/1.3-1) > 0.1 {
		t.Errorf("drift %+v, want node b at 1.3", e)
	}
	if got := strings.Join(e.KnownChanges, "; "); got != "node b has 1 cores instead of 2" {
		t.Errorf("known changes %q, want the core that b lost now", got)
	}
}

// All nodes become slower: the drift names no node, and the next fit predicts the new times
// although most examples are old.
func TestTrainer_CorrectsStaleExamplesAfterADrift(t *testing.T) {
	b := bustest.New(t)
	f := newFleet(b, "a", "b", "c")
	f.run(t, 90)
	runTrainer(t, b, nil, trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Millisecond})
	train(t, b)
	before := predictEpoch(t, b, 16, 2)
	for _, n := range f.nodes {
		f.factor[n] = 1.5
	}
	f.run(t, 30)
	if e := awaitDrift(t, b, 0); e.Scope != schemas.DriftAll || math.Abs(e.Ratio/1.5-1) > 0.1 {
		t.Errorf("drift %+v, want all at 1.5", e)
	}
	awaitTrained(t, b, "drift: jobs take 1.")
	train(t, b) // includes the runs after the drift
	if after := predictEpoch(t, b, 16, 2); math.Abs(after/before/1.5-1) > 0.1 {
		t.Errorf("predicted epoch %.3f s after the drift, %.3f s before, want 1.5 times as much",
			after, before)
	}
}

// A trainer detects a drift in events that arrived while no trainer ran, and publishes it once.
func TestTrainer_PublishesADriftOnce(t *testing.T) {
	b := bustest.New(t)
	f := newFleet(b, "a", "b")
	f.run(t, 60)
	stop := startTrainer(t, b, trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Hour})
	train(t, b)
	stop()
	f.factor["a"] = 1.4
	f.run(t, 30)
	for range 2 {
		stop = startTrainer(t, b, trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Hour})
		if e := awaitDrift(t, b, 0); e.Node != "a" {
			t.Errorf("drift %+v, want node a", e)
		}
		stop()
	}
	drifts := 0
	ctx, cancel := context.WithCancel(within(t))
	err := b.Follow(ctx, bus.FollowOptions{
		Stream:   schemas.StreamRegressor,
		CaughtUp: cancel,
	}, func(r bus.Record) error {
		if _, ok := r.Event.(*schemas.Drift); ok {
			drifts++
		}
		return nil
	})
	if err != nil || drifts != 1 {
		t.Errorf("%d drifts published, error %v; want 1", drifts, err)
	}
}
