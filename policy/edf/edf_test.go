package edf_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/edf"
	"courier/policy/policytest"
)

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, edf.New(), data)
	})
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	moves := 0
	for range 3000 {
		data := make([]byte, random.IntN(2000))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		moves += len(policytest.Rules(t, edf.New(), data).Moves)
	}
	if moves < 3000 {
		t.Errorf("%d moves on 3000 views: do the views still contain jobs?", moves)
	}
}

var now = policytest.Now

// job runs 1, 1.8 and 3 iterations per second on 1, 2 and 4 units, and 2 on 8.
func job(id string, work float64, window time.Duration, units int) policy.ElasticJob {
	return policy.ElasticJob{
		ID:       id,
		Deadline: now.Add(window),
		Units:    units,
		Options: []policy.Option{{
			Work: work,
			Curve: policy.Curve{
				{Units: 1, Rate: 1}, {Units: 2, Rate: 1.8}, {Units: 4, Rate: 3}, {Units: 8, Rate: 2},
			},
		}},
	}
}

func view(units int, running, queue []policy.ElasticJob) *policy.ClusterView {
	return &policy.ClusterView{
		Nodes: []policy.NodeView{{Name: "a", Units: units}},
		Jobs:  running,
		Queue: queue,
		Slot:  time.Minute,
	}
}

// units returns the units that each job holds after a decision.
func units(v *policy.ClusterView, d policy.MoveDecision) map[string]int {
	held := map[string]int{}
	for _, j := range v.Jobs {
		held[j.ID] = j.Units
	}
	for _, m := range d.Moves {
		if m.Kind == policy.Refuse {
			continue
		}
		held[m.Job] = m.Units
	}
	return held
}

func TestPlan_GivesTheEarliestDeadlineItsLargestNumber(t *testing.T) {
	queue := []policy.ElasticJob{job("late", 60, 2*time.Hour, 0), job("early", 60, time.Hour, 0)}
	v := view(12, nil, queue)
	got := units(v, edf.New().Plan(v, now))
	// Eight units are slower than four, but EDF takes them.
	if got["early"] != 8 || got["late"] != 4 {
		t.Errorf("units %v, want 8 for the early deadline and 4 for the late one", got)
	}
}

func TestPlan_AdmitsHopelessJobs(t *testing.T) {
	v := view(8, nil, []policy.ElasticJob{job("hopeless", 1e9, time.Second, 0)})
	if got := units(v, edf.New().Plan(v, now)); got["hopeless"] != 8 {
		t.Errorf("units %v, want the hopeless job running", got)
	}
}
