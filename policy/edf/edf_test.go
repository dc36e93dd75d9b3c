package edf_test

import (
	"testing"
	"time"

	"courier/policy"
	"courier/policy/edf"
	"courier/policy/policytest"
)

// The policy does not keep rule 3, that no move breaks a promise. A late job keeps its place before
// those that could still be in time, as published.
func TestPlan_BreaksPromises(t *testing.T) {
	if broken := policytest.BrokenOnRandomViews(t, edf.New()); broken == 0 {
		t.Error("no promise is broken: the policy keeps the rule, so test that")
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policytest.Rules(t, edf.New(), data)
	})
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	policytest.RandomViews(t, edf.New())
}

var now = policytest.Now

func TestPlan_GivesTheEarliestDeadlineItsLargestNumber(t *testing.T) {
	queue := []policy.ElasticJob{
		policytest.NewJob("late", 60, 2*time.Hour, 0),
		policytest.NewJob("early", 60, time.Hour, 0),
	}
	v := policytest.NewView(12, nil, queue)
	got := policytest.UnitsAfter(v, edf.New().Plan(v, now))
	// Eight units are slower than four, but EDF takes them.
	if got["early"] != 8 || got["late"] != 4 {
		t.Errorf("units %v, want 8 for the early deadline and 4 for the late one", got)
	}
}

func TestPlan_AdmitsHopelessJobs(t *testing.T) {
	v := policytest.NewView(8, nil, []policy.ElasticJob{policytest.NewJob("hopeless", 1e9, time.Second, 0)})
	if got := policytest.UnitsAfter(v, edf.New().Plan(v, now)); got["hopeless"] != 8 {
		t.Errorf("units %v, want the hopeless job running", got)
	}
}
