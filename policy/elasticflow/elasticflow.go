// Package elasticflow is a baseline: the policy of ElasticFlow (Gu et al., ASPLOS 2023), except that
// it decides about each arrival separately. It keeps more deadlines than the published code, which
// refuses all arrivals of a round if any job of the round, running ones included, cannot be satisfied.
//
// All jobs are planned in order of deadline at their minimum satisfactory share: the smallest number
// of units with which a job, planned backwards from its deadline into the units that are still free,
// completes its work. Arrivals wait for the next round, which is at least a slot after the last.
// Planning does not foresee pauses. Left-over units go to jobs without units first, and then to the
// job that gains the most speed per added unit, relative to its present speed per unit.
package elasticflow

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/policy"
)

// Policy is the policy. It is safe for concurrent use.
type Policy struct{}

type round struct {
	start    time.Time
	capacity int
	shares   []minimumShare // admitted jobs in order of deadline
	steps    freeSteps
	moves    []policy.Move
}

// Plan implements policy.Policy.
func (Policy) Plan(v *policy.View) []policy.Move {
	r := &round{start: v.NextMoment(), capacity: v.Units}
	for i := range v.Jobs {
		r.shares = append(r.shares, r.newShare(&v.Jobs[i]))
	}
	slices.SortStableFunc(r.shares, byWindow)
	if r.start.After(v.Now) {
		var jobs []*policy.Job
		for i := range r.shares {
			jobs = append(jobs, r.shares[i].job)
		}
		return append(policy.StopExcess(jobs, r.capacity), policy.Move{Kind: policy.Review, At: r.start})
	}

	r.admit(v.Queue)
	r.fill()
	free, planned := r.capacity, make([]int, len(r.shares))
	for i := range r.shares {
		planned[i] = r.shares[i].units
		free -= planned[i]
	}
	r.leftOver(free)
	r.resize(planned)
	r.review()
	return r.moves
}

func (r *round) newShare(job *policy.Job) minimumShare {
	h := minimumShare{
		job:    job,
		curve:  job.Options[0].Curve.Rising(),
		work:   job.Options[0].Work,
		window: math.Inf(1),
	}
	if !(h.work > 0) || math.IsInf(h.work, 1) {
		h.work, h.curve = 0, nil
	}
	if !job.Deadline.IsZero() {
		h.window = job.Deadline.Sub(r.start).Seconds()
	}
	return h
}

func byWindow(a, b minimumShare) int { return cmp.Compare(a.window, b.window) }

// fill plans all jobs against an empty cluster and returns the number of unsatisfied ones.
func (r *round) fill() int {
	r.steps = append(r.steps[:0], freeStep{0, r.capacity})
	unsatisfied := 0
	for i := range r.shares {
		r.steps.place(&r.shares[i])
		if !r.shares[i].isSatisfied {
			unsatisfied++
		}
	}
	return unsatisfied
}

// admit admits an arrival if no more jobs are unsatisfied with it than without it.
func (r *round) admit(queue []policy.Job) {
	unsatisfied := r.fill()
	for i := range queue {
		if len(queue[i].Options) == 0 {
			r.settle(policy.Refuse, &queue[i], policy.ReasonTooSlow)
			continue
		}
		before := r.shares
		r.shares = append(slices.Clone(before), r.newShare(&queue[i]))
		slices.SortStableFunc(r.shares, byWindow)
		if r.fill() > unsatisfied {
			r.shares = before
			r.settle(policy.Refuse, &queue[i], policy.ReasonNoCapacity)
			continue
		}
		r.settle(policy.Admit, &queue[i], policy.ReasonFits)
	}
}

func (r *round) settle(kind policy.Kind, job *policy.Job, reason policy.Reason) {
	r.moves = append(r.moves, policy.Move{Kind: kind, Job: job.ID, Reason: reason})
}

// leftOver gives the free units to the jobs that value the next number of units most.
func (r *round) leftOver(free int) {
	units := make([]int, len(r.shares))
	for i := range units {
		units[i] = r.shares[i].units
	}
	policy.Divide(units, free, func(i, units int) (int, float64) { return r.shares[i].step(units) })
	for i := range units {
		r.shares[i].units = units[i]
	}
}

// step returns the next number of units, and the value of that step; 0 if there is none.
func (h *minimumShare) step(units int) (to int, value float64) {
	now := h.curve.Within(units)
	for _, p := range h.curve {
		switch added := float64(p.Units - now.Units); {
		case p.Units <= units:
		case now.Units == 0:
			return p.Units, math.MaxFloat64
		default:
			return p.Units, (p.Rate - now.Rate) / added / (now.Rate / float64(now.Units))
		}
	}
	return 0, 0
}

// resize returns the changes as moves. planned are the units without left-over ones.
func (r *round) resize(planned []int) {
	for i := range r.shares {
		h := &r.shares[i]
		reason := policy.ReasonShare
		switch {
		case h.units == h.job.Units:
			continue
		case h.units < h.job.Units:
			reason = policy.ReasonYield
		case h.units > planned[i]:
			reason = policy.ReasonLeftOver
		}
		r.moves = append(r.moves, policy.Move{
			Kind: policy.Resize, Job: h.job.ID, Units: h.units, Reason: reason,
		})
	}
}

// review makes the next round due where a plan first changes.
func (r *round) review() {
	until := math.Inf(1)
	for i := range r.shares {
		until = min(until, r.shares[i].until)
	}
	if until < maxReviewSeconds {
		at := r.start.Add(max(time.Second, time.Duration(until*float64(time.Second))))
		r.moves = append(r.moves, policy.Move{Kind: policy.Review, At: at})
	}
}

// maxReviewSeconds bounds the time to a review, so that it is representable.
const maxReviewSeconds = 1e9
