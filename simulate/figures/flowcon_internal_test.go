package figures

import (
	"math"
	"slices"
	"sync"
	"testing"

	"courier/policy/quality"
)

// reproduced are the figures of FlowCon.
var reproduced = sync.OnceValue(FlowCon)

func byVariant(c *Comparisons) map[string]Figure {
	found := map[string]Figure{}
	for _, f := range c.Figures {
		found[f.Variant+": "+f.Name] = f
	}
	return found
}

// Fair sharing of the fixed schedule has a closed solution.
func TestSimulateSharing_FairSharing(t *testing.T) {
	o := simulateSharing(paperJobs, sharing{isFair: true}, 0)
	seconds, makespan := o.seconds, o.makespan
	for name, want := range map[string]float64{"first": 390, "second": 270, "third": 90} {
		if math.Abs(seconds[name]-want) > 0.6 {
			t.Errorf("completion time of %s = %g s, want %g s", name, seconds[name], want)
		}
	}
	if math.Abs(makespan-390) > 0.6 {
		t.Errorf("makespan = %g s, want 390 s, the sum of the work", makespan)
	}
	contended := simulateSharing(paperJobs, sharing{isFair: true}, 0.1).seconds
	if contended["third"] < 1.1*seconds["third"] {
		t.Errorf("third job with contention: %g s, want more than %g s", contended["third"], seconds["third"])
	}
}

// Caps reach what the design page reports of them, and weights the published 42.06 % with the makespan
// of fair sharing, but with beta 2 only if losses come often.
func TestFlowCon_ReachesThePublishedFigures(t *testing.T) {
	reached := byVariant(reproduced())
	const (
		third     = ": completion time of the third job"
		published = third + ", published"
	)
	for name, want := range map[string]struct {
		target float64
		isMet  bool
	}{
		"fair sharing: completion time of the first job":                  {390.5, true},
		"as published: caps, beta 1 + 1/n, threshold 0.005" + third:       {0.14, true},
		"as published: caps, beta 1 + 1/n, threshold 0.05: makespan":      {-0.03, true},
		"caps, beta 2, threshold 0.05" + third:                            {0.22, true},
		"weights, beta 2, losses every 10 s, threshold 0.01" + third:      {0.406, false},
		"weights, beta 2, losses every 5 s, threshold 0.01" + third:       {0.406, true},
		"weights, beta 2, losses every 5 s, threshold 0.01" + published:   {0.4206, true},
		"weights, beta 4, losses every 10 s, threshold 0.005" + published: {0.4206, true},
		"weights, beta 4, losses every 10 s, threshold 0.01" + published:  {0.4206, true},
		"weights, beta 4, losses every 10 s, threshold 0.01: makespan":    {0, true},
	} {
		f, found := reached[name]
		if !found || f.Target == nil || *f.Target != want.target || *f.IsMet != want.isMet {
			t.Errorf("%s: %.4f (found %t, met %t), want the target %g, met %t", name, f.Reached, found,
				found && *f.IsMet, want.target, want.isMet)
		}
	}
}

// With weights, one growing job among n - 1 completing ones is at most 1 - beta / (beta n - n + 1)
// faster than with fair
func TestSimulateSharing_ObeysTheBound(t *testing.T) {
	const n = 3
	fair := simulateSharing(paperJobs, sharing{isFair: true}, 0).seconds
	for _, beta := range []float64{4.0 / 3, 2, 4, 8} {
		bound := 1 - beta/(beta*n-n+1)
		for _, interval := range []float64{1, 2, 5, 10, 20} {
			o := quality.Options{Floor: beta}
			seconds := simulateSharing(paperJobs, sharing{options: o, interval: interval}, 0).seconds
			if got := 1 - seconds["third"]/fair["third"]; got > bound+0.002 {
				t.Errorf("beta %g, losses every %g s: %.3f faster, want at most %.3f", beta, interval, got, bound)
			}
		}
	}
}

// Shares change which job gets the node, not how much work is done: without contention the last job
// ends at the same time.
func TestSimulateSharing_ConservesWork(t *testing.T) {
	for seed := range uint64(10) {
		jobs := randomJobs(10, 900, seed)
		want := simulateSharing(jobs, sharing{isFair: true}, 0)
		got := simulateSharing(jobs, sharing{interval: 20}, 0)
		if len(got.seconds) != len(jobs) || math.Abs(got.makespan-want.makespan) > 1 {
			t.Errorf("seed %d: %d jobs end, the last one after %.1f s, want %.1f s",
				seed, len(got.seconds), got.makespan, want.makespan)
		}
		for _, j := range jobs {
			if got.seconds[j.name] < j.work-0.1 || got.quality[j.name] > got.seconds[j.name]+0.1 {
				t.Errorf("seed %d: job %s ends after %.1f s of %.1f s",
					seed, j.name, got.seconds[j.name], j.work)
			}
		}
	}
}

// The late job gains the published 42 % only if the losses of the others are flat when it arrives, its own
// falls until it ends, and it reports more than a few losses.
func TestFlowCon_GainNeedsFlatNeighboursAndManyLosses(t *testing.T) {
	for _, test := range []struct {
		name                     string
		arrival, decay, interval float64
		isGain                   bool
	}{
		{"as published, losses every 5 s", 80, 0.35, 5, true},
		{"arrives later", 160, 0.35, 5, true},
		{"arrives while the others still learn", 40, 0.35, 5, false},
		{"has learned after a quarter of its work", 80, 0.08, 5, false},
		{"reports a loss every 20 s", 80, 0.35, 20, false},
	} {
		jobs := slices.Clone(paperJobs)
		jobs[2].arrival, jobs[2].decay = test.arrival, test.decay
		fair := simulateSharing(jobs, sharing{isFair: true}, 0)
		o := quality.Options{Floor: 4, Threshold: 0.01}
		got := simulateSharing(jobs, sharing{options: o, interval: test.interval}, 0)
		gain := 1 - got.seconds["third"]/fair.seconds["third"]
		t.Logf("%s: %.1f %% shorter", test.name, 100*gain)
		if isGain := gain >= publishedRatio; isGain != test.isGain || !test.isGain && gain > 0.3 {
			t.Errorf("%s: %.3f shorter, want at least %.3f: %t", test.name, gain, publishedRatio, test.isGain)
		}
	}
}
