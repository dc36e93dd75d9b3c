package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"courier/policy/placement"
	"courier/policy/quality"
)

func job(name string, phase quality.Phase, remaining float64) placement.Job {
	return placement.Job{Name: name, RemainingSeconds: remaining, Phase: phase, CanMove: true}
}

// crowded is a node with two growing jobs and a completing one.
func crowded() placement.Node {
	return placement.Node{Name: "crowded", Jobs: []placement.Job{
		job("new", quality.Growing, 200),
		job("newer", quality.Growing, 300),
		job("slow", quality.Completing, 400),
	}}
}

func TestMigrate_MovesASlowJobAwayFromGrowingOnes(t *testing.T) {
	empty := placement.Node{Name: "empty"}
	other := placement.Node{Name: "other", Jobs: []placement.Job{job("a", quality.Completing, 100)}}
	// Together the three jobs end after 600, 800 and 900 s, apart after 400, 500 and 60 + 400 s.
	best := &placement.Migration{Job: "slow", From: "crowded", To: "empty", SavedSeconds: 940}
	for _, test := range []struct {
		name   string
		change func(n *placement.Node)
		others []placement.Node
		o      placement.MigrateOptions
		want   *placement.Migration
	}{
		{"to an empty node", nil, []placement.Node{empty}, placement.MigrateOptions{}, best},
		{"to the better node", nil, []placement.Node{other, empty}, placement.MigrateOptions{}, best},
		// The two jobs of the other node share it until they end after 140 and 500 s.
		{
			"to a node without growing jobs", nil, []placement.Node{other}, placement.MigrateOptions{},
			&placement.Migration{Job: "slow", From: "crowded", To: "other", SavedSeconds: 860},
		},
		{
			"not to a node with a growing job", nil,
			[]placement.Node{{Name: "a", Jobs: []placement.Job{job("b", quality.Growing, 1)}}},
			placement.MigrateOptions{}, nil,
		},
		{
			"one growing job is not enough", func(n *placement.Node) { n.Jobs[0].Phase = quality.Watched },
			[]placement.Node{empty}, placement.MigrateOptions{}, nil,
		},
		{
			"a watched job stays", func(n *placement.Node) { n.Jobs[2].Phase = quality.Watched },
			[]placement.Node{empty}, placement.MigrateOptions{}, nil,
		},
		{
			"a job that cannot move stays", func(n *placement.Node) { n.Jobs[2].CanMove = false },
			[]placement.Node{empty}, placement.MigrateOptions{}, nil,
		},
		{
			"an unknown remaining time", func(n *placement.Node) { n.Jobs[1].RemainingSeconds = math.NaN() },
			[]placement.Node{empty}, placement.MigrateOptions{}, nil,
		},
		{
			"a node with unknown remaining times is no target", nil,
			[]placement.Node{node(0, math.NaN(), math.Inf(1)), empty}, placement.MigrateOptions{}, best,
		},
		{
			"less than twice its cost", nil, []placement.Node{empty},
			placement.MigrateOptions{CostSeconds: 400}, nil,
		},
		{
			"the published rule does not count", nil, []placement.Node{empty},
			placement.MigrateOptions{CostSeconds: 400, IsPublished: true},
			&placement.Migration{Job: "slow", From: "crowded", To: "empty", SavedSeconds: 600},
		},
		{"no other node", nil, nil, placement.MigrateOptions{}, nil},
	} {
		n := crowded()
		if test.change != nil {
			test.change(&n)
		}
		got := placement.Migrate(append([]placement.Node{n}, test.others...), test.o)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// A move starts at a node with two growing jobs, ends at one without, takes a completing job that can
// move, and saves what a simulation of both nodes saves.
func TestMigrate_KeepsItsPropertiesOnRandomNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	moves := 0
	for range 3000 {
		nodes := randomNodes(random)
		for i := range nodes {
			nodes[i].Name = fmt.Sprint("node-", i)
			for k := range nodes[i].Jobs {
				j := &nodes[i].Jobs[k]
				j.Name = fmt.Sprint(i, "-", k)
				j.Phase = quality.Phase(random.IntN(3))
				j.CanMove = random.IntN(4) > 0
			}
		}
		cost := 1 + 60*random.Float64()
		m := placement.Migrate(nodes, placement.MigrateOptions{CostSeconds: cost})
		if m == nil {
			continue
		}
		moves++
		from, to := find(nodes, m.From), find(nodes, m.To)
		var left []float64
		moved := placement.Job{}
		for _, j := range from.Jobs {
			if j.Name == m.Job {
				moved = j
			} else {
				left = append(left, j.RemainingSeconds)
			}
		}
		if growing(from) < 2 || growing(to) > 0 || moved.Phase != quality.Completing || !moved.CanMove {
			t.Fatalf("%+v of %+v", m, nodes)
		}
		before := share(remaining(from), -1, 0) + share(remaining(to), -1, 0)
		after := share(left, -1, 0) + share(remaining(to), moved.RemainingSeconds, cost)
		saved := before - after
		if math.Abs(saved-m.SavedSeconds) > 1e-9*before || m.SavedSeconds < 2*cost {
			t.Fatalf("%+v with a cost of %g s saves %g s", m, cost, saved)
		}
	}
	if moves < 300 {
		t.Errorf("%d moves on 3000 views: do they still have growing jobs?", moves)
	}
}

func find(nodes []placement.Node, name string) *placement.Node {
	for i := range nodes {
		if nodes[i].Name == name {
			return &nodes[i]
		}
	}
	return nil
}

func growing(n *placement.Node) (count int) {
	for _, j := range n.Jobs {
		if j.Phase == quality.Growing {
			count++
		}
	}
	return count
}

func remaining(n *placement.Node) (seconds []float64) {
	for _, j := range n.Jobs {
		seconds = append(seconds, j.RemainingSeconds)
	}
	return seconds
}

// share returns the sum of the completion times of jobs on a node from event to event, where another job
// starts late if its remaining time is not negative.
func share(remaining []float64, late, start float64) float64 {
	var left []float64
	for _, r := range remaining {
		left = append(left, max(0, r))
	}
	now, sum := 0.0, 0.0
	for len(left) > 0 || late >= 0 {
		step := math.Inf(1)
		for _, r := range left {
			step = min(step, r*float64(len(left)))
		}
		starts := late >= 0 && now+step >= start
		if starts {
			step = start - now
		}
		now += step
		var rest []float64
		for _, r := range left {
			if r -= step / float64(len(left)); r > 1e-12*(1+step) {
				rest = append(rest, r)
			} else {
				sum += now
			}
		}
		left = rest
		if starts {
			left, late = append(left, late), -1
		}
	}
	return sum
}

// BenchmarkMigrate plans a move among 1,000 running jobs.
func BenchmarkMigrate(b *testing.B) {
	nodes := make([]placement.Node, 100)
	for i := range nodes {
		nodes[i].Name = fmt.Sprint(i)
		for k := range 10 {
			phase := quality.Phase(k % 3)
			if i%2 == 0 {
				phase = quality.Completing
			}
			nodes[i].Jobs = append(nodes[i].Jobs, job(fmt.Sprint(i, "-", k), phase, float64(10*k)))
		}
	}
	for b.Loop() {
		placement.Migrate(nodes, placement.MigrateOptions{})
	}
}
