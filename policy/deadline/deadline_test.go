package deadline_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/deadline"
)

var now = time.Unix(1_000_000, 0).UTC()

// view returns a cluster with jobs that run 1, 1.8 and 3 iterations per second on 1, 2 and 4 units.
func view(units int, running, queue []policy.Job) *policy.View {
	return &policy.View{
		Now:   now,
		Units: units,
		Jobs:  running,
		Queue: queue,
		Slot:  time.Minute,
		Pause: policy.Pause{
			Base: 2 * time.Second, PerDoubling: 2 * time.Second, Charge: policy.ChargeAll,
		},
	}
}

func job(id string, work float64, window time.Duration, units int) policy.Job {
	return policy.Job{
		ID:        id,
		Submitted: now,
		Deadline:  now.Add(window),
		Units:     units,
		Options: []policy.Option{{
			Work:  work,
			Curve: policy.Curve{{Units: 1, Rate: 1}, {Units: 2, Rate: 1.8}, {Units: 4, Rate: 3}},
		}},
	}
}

// byName returns the reasons of moves by kind, job and units.
func byName(moves []policy.Move) map[string]policy.Reason {
	found := map[string]policy.Reason{}
	for _, m := range moves {
		found[fmt.Sprint(m.Kind, " ", m.Job, " ", m.Units)] = m.Reason
	}
	return found
}

func TestPlan_AdmitsWhatFits(t *testing.T) {
	tests := map[string]struct {
		running, queue []policy.Job
		units          int
		want           string
		reason         policy.Reason
	}{
		"an empty cluster starts a job at once": {
			queue: []policy.Job{job("a", 3600, 2*time.Hour, 0)}, units: 1,
			want: "resize a 1", reason: policy.ReasonShare,
		},
		"left-over units go to the only job": {
			queue: []policy.Job{job("a", 3600, 2*time.Hour, 0)}, units: 4,
			want: "resize a 4", reason: policy.ReasonLeftOver,
		},
		"a tight job gets the number of units that it needs": {
			queue: []policy.Job{job("a", 3600*2.9, time.Hour+10*time.Minute, 0)}, units: 4,
			want: "resize a 4", reason: policy.ReasonShare,
		},
		"no number of units is fast enough": {
			queue: []policy.Job{job("a", 3600*3.1, time.Hour, 0)}, units: 4,
			want: "refuse a 0", reason: policy.ReasonTooSlow,
		},
		"a promise leaves too little": {
			running: []policy.Job{job("b", 3600*2.6, time.Hour, 4)}, units: 4,
			queue: []policy.Job{job("a", 3600*1.7, time.Hour, 0)},
			want:  "refuse a 0", reason: policy.ReasonNoCapacity,
		},
		"a job that has more than its share yields": {
			running: []policy.Job{job("b", 3600, 3*time.Hour, 4)}, units: 4,
			queue: []policy.Job{job("a", 3600*1.7, time.Hour+15*time.Minute, 0)},
			want:  "resize b 2", reason: policy.ReasonYield,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := view(test.units, test.running, test.queue)
			if got := byName(deadline.ForCluster().Plan(v)); got[test.want] != test.reason {
				t.Errorf("moves %v, want %s for %q", got, test.want, test.reason)
			}
		})
	}
}

func TestPlan_AdmitsTheCheaperOfTwoJobs(t *testing.T) {
	queue := []policy.Job{job("large", 3600*2.6, time.Hour, 0), job("small", 3600*1.7, time.Hour, 0)}
	got := byName(deadline.ForCluster().Plan(view(4, nil, queue)))
	if got["admit small 0"] == "" || got["refuse large 0"] != policy.ReasonNoCapacity {
		t.Errorf("moves %v, want the small job admitted and the large one refused", got)
	}
}

func TestPlan_RefusesAJobThatTakesThePlaceOfManyOthers(t *testing.T) {
	queue := []policy.Job{job("a", 3600*2.3, time.Hour, 0)}
	v := view(4, nil, queue)
	if got := byName(deadline.ForCluster().Plan(v)); got["admit a 0"] == "" {
		t.Fatalf("moves %v without other submissions, want the job admitted", got)
	}
	for range 10 {
		v.Recent = append(v.Recent, job("r", 100, time.Hour, 0))
	}
	got := byName(deadline.ForCluster().Plan(v))
	if got["refuse a 0"] != policy.ReasonTooCostly {
		t.Errorf("moves %v after small submissions, want the job refused as too costly", got)
	}
}

func TestPlan_WaitsForTheSlot(t *testing.T) {
	v := view(4, nil, []policy.Job{job("a", 3600, 2*time.Hour, 0)})
	v.Moments, v.LastMoment = 1, now.Add(-20*time.Second)
	moves := deadline.ForCluster().Plan(v)
	if got := byName(moves); len(got) != 2 || got["admit a 0"] == "" {
		t.Errorf("moves %v within the slot, want the job admitted and not started", got)
	}
	want := now.Add(40 * time.Second)
	if review := moves[len(moves)-1]; review.Kind != policy.Review || !review.At.Equal(want) {
		t.Errorf("last move %+v, want a review at %s", review, want)
	}
}

func TestPlan_AMomentMustNotBreakAPromise(t *testing.T) {
	// The running job ends one second before its deadline, unless it pauses.
	running := []policy.Job{job("tight", 3*60, time.Minute+time.Second, 4)}
	queue := []policy.Job{job("a", 3600, 3*time.Hour, 0)}
	got := byName(deadline.ForCluster().Plan(view(8, running, queue)))
	if _, isReviewed := got["review  0"]; len(got) != 2 || got["admit a 0"] == "" || !isReviewed {
		t.Errorf("moves %v, want the new job admitted, and a review to start it later", got)
	}
}

func TestPlan_GivesUpTheJobThatSavesMostOthers(t *testing.T) {
	running := []policy.Job{job("large", 4*3600*2.9, 4*time.Hour, 0)}
	for i := range 4 {
		running = append(running, job(fmt.Sprint("small-", i), 3600*3, 4*time.Hour, 0))
	}
	got := byName(deadline.ForCluster().Plan(view(4, running, nil)))
	for i := range 4 {
		if key := fmt.Sprintf("resize small-%d 1", i); got[key] == "" {
			t.Errorf("moves %v, want %s", got, key)
		}
	}
}

// BenchmarkPlan plans 1,000 running jobs on 2,048 units.
func BenchmarkPlan(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var running []policy.Job
	for i := range 1000 {
		window := time.Duration(600+random.IntN(500_000)) * time.Second
		work := window.Seconds() * (0.1 + 1.5*random.Float64())
		running = append(running, job(fmt.Sprint(i), work, window, 1))
	}
	v := view(2048, running, []policy.Job{job("a", 3600, 2*time.Hour, 0)})
	p := deadline.ForCluster()
	for b.Loop() {
		p.Plan(v)
	}
}
