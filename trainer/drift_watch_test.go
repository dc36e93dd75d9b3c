package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/trainer"
)

// driftingNodes simulates jobs of two models on some nodes, with drift.
type driftingNodes struct {
	random *rand.Rand
	watch  *trainer.Watch
	nodes  int
	models []string
	noise  float64
	drift  func(trainer.JobResidual) float64 // factor of the time of a job
	jobs   int
}

func newDriftingNodes(seed uint64, nodes int, noise float64) *driftingNodes {
	return &driftingNodes{
		random: rand.New(rand.NewPCG(seed, 2)),
		watch:  trainer.NewWatch(noise),
		nodes:  nodes,
		models: []string{"lenet", "bert"},
		noise:  noise,
	}
}

// job simulates the next job.
func (p *driftingNodes) job() (trainer.Finding, bool) {
	o := trainer.JobResidual{
		At:    at(float64(p.jobs)),
		Model: p.models[p.random.IntN(len(p.models))],
		Nodes: []string{fmt.Sprint("n", p.random.IntN(p.nodes))},
	}
	o.Residual = p.noise * p.random.NormFloat64()
	if p.drift != nil {
		o.Residual += math.Log(p.drift(o))
	}
	p.jobs++
	return p.watch.Add(o)
}

// await simulates jobs until there is a finding, and returns their number.
func (p *driftingNodes) await(t *testing.T) (trainer.Finding, int) {
	t.Helper()
	for n := 1; n < 2000; n++ {
		if f, found := p.job(); found {
			return f, n
		}
	}
	t.Fatal("no finding in 2000 jobs")
	return trainer.Finding{}, 0
}

func slow(s trainer.DriftScope, factor float64) func(trainer.JobResidual) float64 {
	return func(o trainer.JobResidual) float64 {
		if s.Kind == trainer.ScopeAll || s.Kind == trainer.ScopeNode && o.Nodes[0] == s.Name ||
			s.Kind == trainer.ScopeModel && o.Model == s.Name {
			return factor
		}
		return 1
	}
}

// A finding names the scope, the ratio and the begin of a drift, and separates a slow node from a
// slow cluster.
func TestWatch_NamesTheCause(t *testing.T) {
	const plays = 200
	for _, c := range []struct {
		cause  trainer.DriftScope
		nodes  int
		factor float64
		noise  float64
		delay  int     // maximum median number of jobs
		share  float64 // minimum share of correct causes
	}{
		{trainer.DriftScope{Kind: trainer.ScopeAll}, 4, 1.10, 0.05, 10, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeAll}, 4, 1.30, 0.05, 3, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeAll}, 4, 1.10, 0.15, 55, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeAll}, 4, 1.30, 0.15, 12, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeAll}, 1, 1.30, 0.05, 3, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeNode, Name: "n2"}, 4, 1.10, 0.05, 50, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeNode, Name: "n2"}, 4, 1.30, 0.05, 16, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeNode, Name: "n1"}, 2, 1.30, 0.05, 8, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeNode, Name: "n2"}, 4, 0.75, 0.05, 16, 0.95},
		{trainer.DriftScope{Kind: trainer.ScopeModel, Name: "bert"}, 4, 1.10, 0.05, 24, 0.80},
	} {
		var delays []int
		named, ratio := 0, 0.0
		for seed := range uint64(plays) {
			p := newDriftingNodes(seed, c.nodes, c.noise)
			for range 60 {
				p.job()
			}
			p.drift = slow(c.cause, c.factor)
			f, n := p.await(t)
			delays, ratio = append(delays, n), ratio+math.Log(f.Ratio)/plays
			if f.Cause == c.cause {
				named++
			}
		}
		slices.Sort(delays)
		if got := delays[plays/2]; got > c.delay || float64(named) < c.share*plays ||
			math.Abs(math.Exp(ratio)/c.factor-1) > 0.04 {
			t.Errorf("change of %v by %.2f at noise %.2f on %d nodes: detected in %d of %d plays as %.2f, "+
				"after a median of %d jobs; want at most %d",
				c.cause, c.factor, c.noise, c.nodes, named, plays, math.Exp(ratio), got, c.delay)
		}
	}
}

// A drift and its end are found once each; after that there are no alarms.
func TestWatch_DetectsTheEndOfADrift(t *testing.T) {
	for seed := range uint64(20) {
		p := newDriftingNodes(seed, 4, 0.05)
		node := trainer.DriftScope{Kind: trainer.ScopeNode, Name: "n1"}
		p.drift = slow(node, 1.3)
		if f, _ := p.await(t); f.Cause != node {
			continue // checked above
		}
		for range 400 {
			if f, found := p.job(); found {
				t.Errorf("seed %d: finding %+v, want none, because the drift is already known",
					seed, f)
			}
		}
		p.drift = nil
		f, n := p.await(t)
		if f.Cause != node || math.Abs(f.Ratio-1) > 0.1 || math.Abs(f.BeforeRatio-1.3) > 0.06 ||
			n > 60 {
			t.Errorf("seed %d: after the return of %v, finding %+v after %d jobs; want ratio 1 within 60",
				seed, node, f,
				n)
		}
		for range 400 {
			if f, found := p.job(); found {
				t.Errorf("seed %d: finding %+v after the return, want none", seed, f)
			}
		}
	}
}

// With all detectors together, false alarms are rare.
func TestWatch_IsSilentWithoutDrift(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	p, found := newDriftingNodes(5, 4, 0.05), 0
	for range 300_000 {
		if _, is := p.job(); is {
			found++
		}
	}
	// A single detector has 1.1 false alarms here; more than 9 would be 3 in 10^5 jobs.
	if found > 9 {
		t.Errorf("%d false alarms in 300000 stationary jobs with all detectors, want at most 9", found)
	}
}

// A residual that is not finite is ignored.
func TestWatch_IgnoresNonFiniteResiduals(t *testing.T) {
	w := trainer.NewWatch(0.05)
	for range 100 {
		for _, r := range []float64{math.NaN(), math.Inf(1)} {
			if f, found := w.Add(trainer.JobResidual{Residual: r}); found {
				t.Fatalf("finding %+v, want none", f)
			}
		}
	}
}

// A finding has the coverage of the bounds since the drift.
func TestWatch_ReportsTheCoverageSinceTheChange(t *testing.T) {
	w := trainer.NewWatch(0.05)
	for i := range 200 {
		o := trainer.JobResidual{
			At:          time.Unix(int64(i), 0),
			Model:       "m",
			Nodes:       []string{"a"},
			WithinBound: 1,
			HasBound:    true,
			Residual:    0.05 * float64(i%3-1),
		}
		if i >= 100 {
			o.WithinBound, o.Residual = 0.25, o.Residual+0.3
		}
		if f, found := w.Add(o); found {
			if i < 100 || f.Coverage == nil || math.Abs(*f.Coverage-0.25) > 0.01 {
				t.Errorf("after %d jobs: %+v, want a coverage of 0.25 after the change", i, f)
			}
			return
		}
	}
	t.Error("no finding")
}

// If consecutive jobs differ five times as much as calibrated, this is not reported as drift
// repeatedly; a larger change is still detected.
func TestWatch_AdaptsToNoise(t *testing.T) {
	for seed := range uint64(5) {
		p := newDriftingNodes(seed, 1, 0.25)
		p.watch = trainer.NewWatch(0.05)
		early, late := 0, 0
		for n := range 2000 {
			if _, found := p.job(); found && n < 100 {
				early++
			} else if found {
				late++
			}
		}
		if early > 12 || late > 2 {
			t.Errorf("seed %d: %d alarms in the first 100 jobs and %d in the next 1,900, "+
				"want at most 12 and 2",
				seed, early, late)
		}
		p.drift = slow(trainer.DriftScope{Kind: trainer.ScopeAll}, 2)
		if f, n := p.await(t); n > 15 || f.Deviation < 0.12 || f.Deviation > 0.5 {
			t.Errorf("seed %d: a doubled time was detected after %d jobs, with a deviation of %.2f; "+
				"want 15 at most, and 0.25",
				seed, n, f.Deviation)
		}
	}
}
