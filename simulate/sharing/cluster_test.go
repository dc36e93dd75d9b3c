package sharing_test

import (
	"maps"
	"math"
	"testing"

	"courier/policy/placement"
	"courier/simulate/sharing"
)

var placements = []sharing.Placement{
	sharing.PlacementFewest, sharing.PlacementLeastWork, sharing.PlacementProCon,
}

// Three jobs on two nodes have a closed solution. The third job shares a node with the short one if
// work counts, and with the job on the first or second node otherwise.
func TestSimulateCluster_Places(t *testing.T) {
	jobs := []sharing.TrainingJob{
		{Name: "long", Arrival: 0, Work: 100, Decay: 0.1},
		{Name: "short", Arrival: 1, Work: 40, Decay: 0.1},
		{Name: "third", Arrival: 11, Work: 30, Decay: 0.1},
	}
	for _, p := range []sharing.Placement{sharing.PlacementLeastWork, sharing.PlacementProCon} {
		cl := sharing.Cluster{Nodes: 2, Sharing: sharing.Sharing{Rule: sharing.RuleFair}, Placement: p}
		got := sharing.SimulateCluster(jobs, cl, 0)
		for name, want := range map[string]float64{"long": 100, "short": 70, "third": 60} {
			if math.Abs(got.Seconds[name]-want) > 0.3 {
				t.Errorf("%q: completion time of %s = %g s, want %g s", p, name, got.Seconds[name], want)
			}
		}
	}
}

// A cluster of one node is a node, and the nodes of a cluster do all work, each at most its share.
func TestSimulateCluster_ConservesWork(t *testing.T) {
	fair := sharing.Sharing{Rule: sharing.RuleFair}
	for seed := range uint64(5) {
		jobs := sharing.RandomJobs(20, 200, 0.1, seed)
		work, last := 0.0, 0.0
		for _, j := range jobs {
			work += j.Work
			last = max(last, j.Arrival+j.Work)
		}
		single := sharing.Simulate(jobs, fair, 0)
		for _, p := range placements {
			one := sharing.SimulateCluster(jobs, sharing.Cluster{Nodes: 1, Sharing: fair, Placement: p, Seed: seed}, 0)
			if !maps.Equal(one.Seconds, single.Seconds) {
				t.Errorf("seed %d, %q: one node differs from Simulate", seed, p)
			}
			four := sharing.Cluster{Nodes: 4, Sharing: fair, Placement: p, Seed: seed}
			got := sharing.SimulateCluster(jobs, four, 0)
			if least := max(last, work/4); got.Makespan < least-0.3 {
				t.Errorf("seed %d, %q: makespan %g s, want at least %g s", seed, p, got.Makespan, least)
			}
			for _, j := range jobs {
				if got.Seconds[j.Name] < j.Work-0.1 {
					t.Errorf("seed %d, %q: job %s ends after %.1f s of %.1f s",
						seed, p, j.Name, got.Seconds[j.Name], j.Work)
				}
			}
			if again := sharing.SimulateCluster(jobs, four, 0); !maps.Equal(again.Seconds, got.Seconds) {
				t.Errorf("seed %d, %q: two results for the same seed", seed, p)
			}
		}
	}
}

// Three jobs share a node, because the job on the other one seems to be long, but ends after 20 s. The
// loss of the slow job falls in the first seconds only. After two low windows it moves, at 50 s, and
// continues at 60 s on a node of its own.
func TestSimulateCluster_MovesASlowJobToAFreeNode(t *testing.T) {
	jobs := []sharing.TrainingJob{
		{Name: "slow", Work: 400, FinalLoss: 0.1, Decay: 0.005},
		{Name: "short", Work: 20, FinalLoss: 0.1, Decay: 0.1, PredictionFactor: 100},
		{Name: "new", Work: 200, FinalLoss: 0.1, Decay: 0.1},
		{Name: "newer", Work: 300, FinalLoss: 0.1, Decay: 0.1},
	}
	for _, test := range []struct {
		name      string
		migration *placement.MigrateOptions
		want      map[string]float64
	}{
		{"jobs stay", nil, map[string]float64{"short": 20, "new": 600, "newer": 800, "slow": 900}},
		{
			"a move costs too much", &placement.MigrateOptions{CostSeconds: 400},
			map[string]float64{"short": 20, "new": 600, "newer": 800, "slow": 900},
		},
		{
			"a move pays back", &placement.MigrateOptions{CostSeconds: 10},
			map[string]float64{"short": 20, "new": 416.7, "newer": 516.7, "slow": 443.4},
		},
	} {
		got := sharing.SimulateCluster(jobs, sharing.Cluster{
			Nodes:     2,
			Sharing:   sharing.Sharing{Rule: sharing.RuleFair},
			Placement: sharing.PlacementLeastWork,
			Migration: test.migration,
		}, 0)
		for name, want := range test.want {
			if math.Abs(got.Seconds[name]-want) > 0.3 {
				t.Errorf("%s: completion time of %s = %.1f s, want %g s", test.name, name, got.Seconds[name], want)
			}
		}
	}
}

// The published reductions of ProCon and SpeCon are not reached: after the nodes with the fewest jobs,
// little is left to gain.
func TestReproduce_ReportsSystemsForSeveralNodes(t *testing.T) {
	reached := byVariant(reproduced())
	for _, schedule := range []string{
		", 30 random schedules of 40 jobs over 200 s on 4 nodes, contention 0",
		", 30 random schedules of 40 jobs over 200 s on 4 nodes, contention 0.1",
		", 30 random schedules of 40 jobs over 900 s on 4 nodes, contention 0",
		", 30 random schedules of 40 jobs over 900 s on 4 nodes, contention 0.1",
	} {
		for _, want := range []struct {
			system, name string
			target       float64
		}{
			{"ProCon", "completion time of the best job, mean", 0.533},
			{"ProCon", "completion time of all jobs, mean", 0.23},
			{"SpeCon as published", "completion time of the best job, mean", 0.415},
			{"SpeCon as published", "completion time of all jobs, mean", 0.148},
			{"SpeCon as published", "makespan, mean", 0.247},
			{"SpeCon with moves that save twice their cost", "completion time of all jobs, mean", 0.148},
		} {
			f, isFound := reached[want.system+schedule+": "+want.name]
			if !isFound || f.Target == nil || *f.Target != want.target || *f.IsMet || !(f.Low < f.High) {
				t.Errorf("%s%s, %s: %+v, want the target %g, not met", want.system, schedule, want.name, f, want.target)
			}
		}
	}
	// In a burst, moves that save twice their cost shorten the mean.
	const burst = ", 30 random schedules of 40 jobs over 200 s on 4 nodes, contention 0.1"
	f := reached["SpeCon with moves that save twice their cost"+burst+": completion time of all jobs, mean"]
	if !(f.Low > 0) {
		t.Errorf("moves that pay back: %+v, want an interval above 0", f)
	}
}
