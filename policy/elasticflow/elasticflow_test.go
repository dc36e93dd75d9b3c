package elasticflow_test

import (
	"testing"
	"time"

	"courier/policy"
	"courier/policy/elasticflow"
	"courier/policy/policytest"
)

// The policy does not keep rule 3, that no move breaks a promise. The published rule plans in whole
// slots and promises by planned ends.
func TestPlan_BreaksPromises(t *testing.T) {
	if broken := policytest.BrokenOnRandomViews(t, elasticflow.New()); broken == 0 {
		t.Error("no promise is broken: the policy keeps the rule, so test that")
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, elasticflow.New(), data)
	})
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	policytest.RandomViews(t, elasticflow.New())
}

var now = policytest.Now

func FuzzPlan_PerArrival(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, elasticflow.NewPerArrival(), data)
	})
}

func TestPlan_HoldsTheMinimumShare(t *testing.T) {
	// Four units are taken for an hour by a job that needs them all.
	running := []policy.ElasticJob{policytest.NewJob("tight", 3*3600, time.Hour, 4)}
	v := policytest.NewView(6, running, []policy.ElasticJob{policytest.NewJob("a", 1.7*3600, time.Hour, 0)})
	got := policytest.UnitsAfter(v, elasticflow.New().Plan(v, now))
	if got["tight"] != 4 || got["a"] != 2 {
		t.Errorf("units %v, want 4 for the running job and 2 for the new one", got)
	}
}

func TestPlan_RefusesTheWholeRound(t *testing.T) {
	queue := []policy.ElasticJob{
		policytest.NewJob("hopeless", 1e9, time.Hour, 0),
		policytest.NewJob("small", 60, time.Hour, 0),
	}
	v := policytest.NewView(8, nil, queue)
	if got := policytest.UnitsAfter(v, elasticflow.New().Plan(v, now)); len(got) != 0 {
		t.Errorf("units %v, want both refused", got)
	}
	got := policytest.UnitsAfter(v, elasticflow.NewPerArrival().Plan(v, now))
	if _, admitted := got["hopeless"]; admitted || got["small"] != 4 {
		t.Errorf("units %v per arrival, want only the small job admitted, with 4 units", got)
	}
}

func TestPlan_ReviewsWhereThePlanChanges(t *testing.T) {
	// The job needs two units only in the second half of its time.
	v := policytest.NewView(2, nil, []policy.ElasticJob{
		policytest.NewJob("a", 1.4*3600, time.Hour, 0),
		policytest.NewJob("b", 0.5*3600, 30*time.Minute, 0),
	})
	d := elasticflow.NewPerArrival().Plan(v, now)
	if want := now.Add(30 * time.Minute); !d.ReviewAt.Equal(want) {
		t.Errorf("review at %s, want %s", d.ReviewAt, want)
	}
}
