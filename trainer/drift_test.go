package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// jobSeries publishes sequential jobs on several nodes.
type jobSeries struct {
	bus    *bus.Bus
	random *rand.Rand
	factor map[string]float64 // of times, by node; absent means 1
	cores  map[string]uint32
	nodes  []string
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
		for n := range uint32(3) {
			f.s += seconds
			e := epochEvent(job, 1, n+1, f.s, seconds, set)
			e.NodeCores = begin.NodeCores
			publish(e)
		}
		publish(ended(job, 1, schemas.EventFinished, f.s, f.s-first, set))
		f.s++
	}
}

// Imported old runs are no evidence of drift, regardless of their speed. A drift after the import
// is detected.
func TestTrainer_ImportedRunsAreNoDrift(t *testing.T) {
	b := bustest.New(t)
	f := newFleet(b, "a", "b")
	f.s = -1e6
	f.run(t, 60)
	runTrainer(t, b, nil, onRequest)
	train(t, b)
	past := newFleet(b, "a", "b")
	past.jobs, past.s = 1000, -2e6
	past.factor["a"], past.factor["b"] = 3, 3
	past.run(t, 60)
	f.factor["a"], f.factor["b"] = 1.5, 1.5
	f.run(t, 12) // as many as a fit needs, which would replace the correction
	train(t, b)
	e := awaitState(t, b, schemas.DriftActive)
	if e.Scope != schemas.DriftModel || math.Abs(e.Ratio/1.5-1) > 0.1 {
		t.Errorf("drift %+v, want the only model at 1.5", e)
	}
}
