package elasticflow_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/elasticflow"
	"courier/policy/policytest"
)

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, elasticflow.New(), data)
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
		moves += len(policytest.Rules(t, elasticflow.New(), data).Moves)
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

func FuzzPlan_PerArrival(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, elasticflow.NewPerArrival(), data)
	})
}

func TestPlan_HoldsTheMinimumShare(t *testing.T) {
	// Four units are taken for an hour by a job that needs them all.
	running := []policy.ElasticJob{job("tight", 3*3600, time.Hour, 4)}
	v := view(6, running, []policy.ElasticJob{job("a", 1.7*3600, time.Hour, 0)})
	got := units(v, elasticflow.New().Plan(v, now))
	if got["tight"] != 4 || got["a"] != 2 {
		t.Errorf("units %v, want 4 for the running job and 2 for the new one", got)
	}
}

func TestPlan_RefusesTheWholeRound(t *testing.T) {
	queue := []policy.ElasticJob{job("hopeless", 1e9, time.Hour, 0), job("small", 60, time.Hour, 0)}
	v := view(8, nil, queue)
	if got := units(v, elasticflow.New().Plan(v, now)); len(got) != 0 {
		t.Errorf("units %v, want both refused", got)
	}
	got := units(v, elasticflow.NewPerArrival().Plan(v, now))
	if _, admitted := got["hopeless"]; admitted || got["small"] != 4 {
		t.Errorf("units %v per arrival, want only the small job admitted, with 4 units", got)
	}
}

func TestPlan_ReviewsWhereThePlanChanges(t *testing.T) {
	// The job needs two units only in the second half of its time.
	v := view(2, nil, []policy.ElasticJob{job("a", 1.4*3600, time.Hour, 0), job("b", 0.5*3600, 30*time.Minute, 0)})
	d := elasticflow.NewPerArrival().Plan(v, now)
	if want := now.Add(30 * time.Minute); !d.ReviewAt.Equal(want) {
		t.Errorf("review at %s, want %s", d.ReviewAt, want)
	}
}
