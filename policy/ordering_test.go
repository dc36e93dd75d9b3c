package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
)

func TestEDF_GivesTheEarliestDeadlineItsLargestNumber(t *testing.T) {
	queue := []policy.Job{
		newJob("late", 60, 2*time.Hour, 0),
		newJob("early", 60, time.Hour, 0),
	}
	v := newView(12, nil, queue)
	got := unitsAfter(v, policy.EDF().Plan(v))
	// Eight units are slower than four, but EDF takes them.
	if got["early"] != 8 || got["late"] != 4 {
		t.Errorf("units %v, want 8 for the early deadline and 4 for the late one", got)
	}
}

func TestEDF_AdmitsHopelessJobs(t *testing.T) {
	v := newView(8, nil, []policy.Job{newJob("hopeless", 1e9, time.Second, 0)})
	if got := unitsAfter(v, policy.EDF().Plan(v)); got["hopeless"] != 8 {
		t.Errorf("units %v, want the hopeless job running", got)
	}
}

func TestJCT_ServesTheShortestJobFirst(t *testing.T) {
	tests := map[string]struct {
		running, queue []policy.Job
		units          int
		want           map[string]int
	}{
		// Eight units are slower than four.
		"the fastest number of units": {
			queue: []policy.Job{newJob("a", 60, time.Hour, 0)}, units: 12,
			want: map[string]int{"a": 4},
		},
		"deadlines do not count": {
			queue: []policy.Job{
				newJob("long", 600, time.Minute, 0), newJob("short", 60, 9*time.Hour, 0),
			}, units: 5,
			want: map[string]int{"short": 4, "long": 1},
		},
		"a longer job yields": {
			running: []policy.Job{newJob("long", 600, time.Hour, 4)},
			queue:   []policy.Job{newJob("short", 60, time.Hour, 0)}, units: 4,
			want: map[string]int{"short": 4, "long": 0},
		},
		"a job that is shorter by now stays": {
			running: []policy.Job{newJob("old", 30, time.Hour, 4)},
			queue:   []policy.Job{newJob("new", 60, time.Hour, 0)}, units: 4,
			want: map[string]int{"old": 4, "new": 0},
		},
	}
	for name, test := range tests {
		v := newView(test.units, test.running, test.queue)
		got := unitsAfter(v, policy.JCT().Plan(v))
		for id, want := range test.want {
			if got[id] != want {
				t.Errorf("%s: job %s has %d units, want %d", name, id, got[id], want)
			}
		}
	}
}

// An option with less work at a lower rate may end sooner, and the capacity limits the rate.
func TestJCT_AdmitsTheOptionThatEndsFirst(t *testing.T) {
	job := newJob("a", 100, time.Hour, 0)
	job.Options = []policy.Option{
		{Work: 100, Curve: policy.Curve{{Units: 1, Rate: 1}, {Units: 8, Rate: 10}}},
		{Work: 100, Curve: policy.Curve{{Units: 1, Rate: 2}}},
	}
	for units, want := range map[int]int{8: 0, 4: 1} {
		v := newView(units, nil, []policy.Job{job})
		for _, m := range policy.JCT().Plan(v) {
			if m.Kind == policy.Admit && m.Option != want {
				t.Errorf("%d units: option %d, want %d", units, m.Option, want)
			}
		}
	}
}

// On one unit, serving the shortest remaining time first has the least mean completion time, so it
// is never behind serving by deadline.
func TestJCT_MeanCompletionTimeIsLeastOnOneUnit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sooner := 0
	for n := range 200 {
		var jobs []policy.Job
		for i := range 2 + random.IntN(6) {
			work := float64(10 + random.IntN(500))
			window := time.Duration(100+random.IntN(5000)) * time.Second
			jobs = append(jobs, newJob(fmt.Sprint(i), work, window, 0))
		}
		shortest, earliest := serve(t, policy.JCT(), jobs), serve(t, policy.EDF(), jobs)
		if shortest > earliest+1e-6 {
			t.Errorf("case %d: sum of completion times %.0f s, %.0f s by deadline", n, shortest, earliest)
		}
		if shortest < earliest {
			sooner++
		}
	}
	if sooner < 100 {
		t.Errorf("sooner in %d of 200 cases: are the cases still different?", sooner)
	}
}

// serve runs jobs on one unit, and returns the sum of the completion times.
func serve(t *testing.T, p policy.Policy, jobs []policy.Job) float64 {
	t.Helper()
	v := newView(1, append([]policy.Job(nil), jobs...), nil)
	v.Slot = 0
	seconds, sum := 0.0, 0.0
	for len(v.Jobs) > 0 {
		v.Now = now.Add(time.Duration(seconds * float64(time.Second)))
		moves := p.Plan(v)
		if err := checkMoves(v, moves); err != nil {
			t.Fatal(err)
		}
		units := unitsAfter(v, moves)
		shortest := math.Inf(1)
		for i := range v.Jobs {
			if v.Jobs[i].Units = units[v.Jobs[i].ID]; v.Jobs[i].Units > 0 {
				shortest = v.Jobs[i].Options[0].Work // at one iteration per second
			}
		}
		seconds += shortest
		var rest []policy.Job
		for _, j := range v.Jobs {
			if j.Units > 0 {
				sum += seconds
				continue
			}
			rest = append(rest, j)
		}
		v.Jobs = rest
	}
	return sum
}
