package reserve_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/policytest"
	"courier/policy/reserve"
)

var rules = []reserve.Rule{reserve.RuleReserve, reserve.RuleFirst, reserve.RuleFirstFit}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, rule := range rules {
			policytest.Rules(t, reserve.New(reserve.Options{Rule: rule}), data)
		}
	})
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	for _, rule := range rules {
		policytest.RandomViews(t, reserve.New(reserve.Options{Rule: rule}))
	}
}

// rigid returns a job that runs on this many units only, for some seconds.
func rigid(id string, demand int, seconds float64, held int) policy.ElasticJob {
	return policy.ElasticJob{ID: id, Units: held, Options: []policy.Option{
		{Work: seconds, Curve: policy.Curve{{Units: demand, Rate: 1}}},
	}}
}

// On 40 units, jobs of up to 4 units are small, and 4 units are reserved for them.
func TestPlan_StartsJobsInTheirPart(t *testing.T) {
	running := func(demand int, seconds float64) policy.ElasticJob {
		return rigid(fmt.Sprint("running-", demand), demand, seconds, demand)
	}
	tests := map[string]struct {
		running, queue []policy.ElasticJob
		want           map[reserve.Rule][]string // started
	}{
		"an empty cluster": {
			queue: []policy.ElasticJob{rigid("large", 30, 600, 0), rigid("small", 3, 600, 0)},
			want: map[reserve.Rule][]string{
				"": {"large", "small"}, "fifo": {"large", "small"}, "first fit": {"large", "small"},
			},
		},
		"a small job overtakes a large one that waits": {
			running: []policy.ElasticJob{running(30, 600)},
			queue:   []policy.ElasticJob{rigid("large", 20, 600, 0), rigid("small", 3, 600, 0)},
			want:    map[reserve.Rule][]string{"": {"small"}, "first fit": {"small"}},
		},
		"a large job does not overtake": {
			running: []policy.ElasticJob{running(30, 600)},
			queue:   []policy.ElasticJob{rigid("large", 20, 600, 0), rigid("less", 6, 600, 0)},
			want:    map[reserve.Rule][]string{"first fit": {"less"}},
		},
		"the part of the small jobs stays free": {
			running: []policy.ElasticJob{running(30, 600)},
			queue: []policy.ElasticJob{
				rigid("a", 3, 600, 0), rigid("b", 3, 600, 0), rigid("large", 7, 600, 0),
			},
			want: map[reserve.Rule][]string{"": {"a"}, "fifo": {"a", "b"}, "first fit": {"a", "b"}},
		},
		"large jobs get what small ones leave": {
			running: []policy.ElasticJob{running(30, 600)},
			queue:   []policy.ElasticJob{rigid("large", 10, 600, 0)},
			want:    map[reserve.Rule][]string{"": {"large"}, "fifo": {"large"}, "first fit": {"large"}},
		},
		"small jobs get what large ones leave": {
			running: []policy.ElasticJob{running(4, 600), running(20, 600)},
			queue:   []policy.ElasticJob{rigid("a", 4, 600, 0), rigid("b", 4, 600, 0)},
			want:    map[reserve.Rule][]string{"": {"a", "b"}, "fifo": {"a", "b"}, "first fit": {"a", "b"}},
		},
		// The large job that ends soon releases 20 units, which are more than the pending large job
		// demands, so that 2 units move to the small jobs now.
		"expected releases count": {
			running: []policy.ElasticJob{running(20, 30), running(12, 600), running(2, 600)},
			queue: []policy.ElasticJob{
				rigid("a", 2, 600, 0), rigid("b", 2, 600, 0), rigid("large", 10, 600, 0),
			},
			want: map[reserve.Rule][]string{"": {"a", "b"}, "fifo": {"a", "b"}, "first fit": {"a", "b"}},
		},
		"later releases do not": {
			running: []policy.ElasticJob{running(20, 90), running(12, 600), running(2, 600)},
			queue: []policy.ElasticJob{
				rigid("a", 2, 600, 0), rigid("b", 2, 600, 0), rigid("large", 10, 600, 0),
			},
			want: map[reserve.Rule][]string{"": {"a"}, "fifo": {"a", "b"}, "first fit": {"a", "b"}},
		},
	}
	for name, test := range tests {
		for _, rule := range rules {
			v := policytest.NewView(40, test.running, test.queue)
			d := reserve.New(reserve.Options{Rule: rule}).Plan(v, policytest.Now)
			if err := policy.Check(v, policytest.Now, d); err != nil {
				t.Fatal(err)
			}
			var started []string
			for _, m := range d.Moves {
				if m.Kind == policy.Resize {
					started = append(started, m.Job)
				}
			}
			if !slices.Equal(started, test.want[rule]) {
				t.Errorf("%s, rule %q: started %v, want %v", name, rule, started, test.want[rule])
			}
		}
	}
}

// A job takes its largest number of units that the cluster has; without one it is refused.
func TestPlan_RefusesWhatTheClusterCannotRun(t *testing.T) {
	v := policytest.NewView(6, nil, []policy.ElasticJob{
		rigid("huge", 8, 60, 0), policytest.NewJob("elastic", 60, time.Hour, 0),
	})
	d := reserve.New(reserve.Options{}).Plan(v, policytest.Now)
	if d.Moves[0].Kind != policy.Refuse || policytest.UnitsAfter(v, d)["elastic"] != 4 {
		t.Errorf("moves %+v, want the huge job refused and 4 units for the other one", d.Moves)
	}
}

// A running job keeps its units to its end, as long as the cluster has them, and so the promise of a
// deadline that it would meet.
func TestPlan_NeverStopsARunningJob(t *testing.T) {
	for i := range 500 {
		data := []byte(fmt.Sprintf("%d%d%d random but tight views of jobs that just meet deadlines", i, 7*i, i*i))
		v := policytest.TightView(data)
		for _, rule := range rules {
			d := reserve.New(reserve.Options{Rule: rule}).Plan(v, policytest.Now)
			if broken := policytest.BrokenPromises(v, policytest.Now, d); len(broken) > 0 {
				t.Fatalf("view %d, rule %q: broken promises %v", i, rule, broken)
			}
			after := policytest.UnitsAfter(v, d)
			for _, j := range v.Jobs {
				if j.Units > 0 && after[j.ID] != j.Units {
					t.Fatalf("view %d, rule %q: job %s holds %d of %d units", i, rule, j.ID, after[j.ID], j.Units)
				}
			}
		}
	}
}

// BenchmarkPlan plans 1,000 running jobs on 2,048 units.
func BenchmarkPlan(b *testing.B) {
	var running []policy.ElasticJob
	for i := range 1000 {
		running = append(running, policytest.NewJob(fmt.Sprint(i), float64(i), time.Hour, 1))
	}
	v := policytest.NewView(2048, running, []policy.ElasticJob{policytest.NewJob("a", 3600, time.Hour, 0)})
	p := reserve.New(reserve.Options{})
	for b.Loop() {
		p.Plan(v, policytest.Now)
	}
}
