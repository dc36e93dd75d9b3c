package elasticflow_test

import (
	"testing"
	"time"

	"courier/policy"
	"courier/policy/elasticflow"
)

var now = time.Unix(1_000_000, 0).UTC()

// job returns a job that runs 1, 1.8 and 3 iterations per second on 1, 2 and 4 units.
func job(id string, work float64, window time.Duration, units int) policy.Job {
	curve := policy.Curve{{Units: 1, Rate: 1}, {Units: 2, Rate: 1.8}, {Units: 4, Rate: 3}}
	return policy.Job{
		ID:       id,
		Deadline: now.Add(window),
		Units:    units,
		Options:  []policy.Option{{Work: work, Curve: curve}},
	}
}

func view(units int, running, queue []policy.Job) *policy.View {
	return &policy.View{Now: now, Units: units, Jobs: running, Queue: queue, Slot: time.Minute}
}

// started returns the units of the jobs that a decision resizes.
func started(moves []policy.Move) map[string]int {
	units := map[string]int{}
	for _, m := range moves {
		if m.Kind == policy.Resize {
			units[m.Job] = m.Units
		}
	}
	return units
}

func TestPlan_HoldsTheMinimumShare(t *testing.T) {
	// Four units are taken for an hour by a job that needs them all.
	running := []policy.Job{job("tight", 3*3600, time.Hour, 4)}
	v := view(6, running, []policy.Job{job("a", 1.7*3600, time.Hour, 0)})
	got := started(elasticflow.Policy{}.Plan(v))
	if _, isResized := got["tight"]; isResized || got["a"] != 2 {
		t.Errorf("units %v, want 2 for the new job, and the running one unchanged", got)
	}
}

func TestPlan_DecidesAboutEachArrival(t *testing.T) {
	queue := []policy.Job{
		job("hopeless", 1e9, time.Hour, 0),
		job("small", 60, time.Hour, 0),
	}
	v := view(8, nil, queue)
	got := started(elasticflow.Policy{}.Plan(v))
	if _, admitted := got["hopeless"]; admitted || got["small"] != 4 {
		t.Errorf("units %v, want only the small job admitted, with 4 units", got)
	}
}

func TestPlan_ReviewsWhereThePlanChanges(t *testing.T) {
	// The job needs two units only in the second half of its time.
	v := view(2, nil, []policy.Job{
		job("a", 1.4*3600, time.Hour, 0),
		job("b", 0.5*3600, 30*time.Minute, 0),
	})
	moves := elasticflow.Policy{}.Plan(v)
	review, want := moves[len(moves)-1], now.Add(30*time.Minute)
	if review.Kind != policy.Review || !review.At.Equal(want) {
		t.Errorf("last move %+v, want a review at %s", review, want)
	}
}
