// Package edf is a baseline without elasticity or admission: earliest deadline first.
//
// At each submission and end, all jobs are ordered by deadline. Each takes its largest number of
// units if that many are free, otherwise the largest number on its curve that fits. No job is
// refused, and a late job keeps its place. These are the rules of "EDF" in ElasticFlow (Gu et al.,
// ASPLOS 2023).
package edf

import (
	"slices"
	"time"

	"courier/policy"
)

// Policy is the EDF policy. It is safe for concurrent use.
type Policy struct{}

// New returns the policy.
func New() *Policy {
	return &Policy{}
}

// Plan implements policy.Policy.
func (*Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	var d policy.MoveDecision
	jobs := make([]*policy.ElasticJob, 0, len(view.Jobs)+len(view.Queue))
	for i := range view.Jobs {
		jobs = append(jobs, &view.Jobs[i])
	}
	for i := range view.Queue {
		job := &view.Queue[i]
		if len(job.Options) == 0 {
			d.Moves = append(d.Moves, policy.Move{
				Kind: policy.Refuse, Job: job.ID, Reason: policy.ReasonTooSlow,
			})
			continue
		}
		d.Moves = append(d.Moves, policy.Move{
			Kind: policy.Admit, Job: job.ID, Reason: policy.ReasonUnlimited,
		})
		jobs = append(jobs, job)
	}
	slices.SortStableFunc(jobs, byDeadline)

	start := view.NextMoment(now)
	resizes := share(jobs, view.Units())
	if start.After(now) {
		resizes = stopExcess(jobs, view.Units())
		d.ReviewAt = start
	}
	d.Moves = append(d.Moves, resizes...)
	return d
}

// byDeadline orders jobs; those without a deadline are last.
func byDeadline(a, b *policy.ElasticJob) int {
	switch {
	case a.Deadline.IsZero() && b.Deadline.IsZero():
		return 0
	case a.Deadline.IsZero():
		return 1
	case b.Deadline.IsZero():
		return -1
	}
	return a.Deadline.Compare(b.Deadline)
}

// share gives the units to the jobs in order.
func share(jobs []*policy.ElasticJob, free int) []policy.Move {
	var moves []policy.Move
	for _, job := range jobs {
		units := 0
		if len(job.Options) > 0 {
			units = largest(job.Options[0].Curve, free)
		}
		free -= units
		if units == job.Units {
			continue
		}
		reason := policy.ReasonShare
		if units < job.Units {
			reason = policy.ReasonYield
		}
		moves = append(moves, policy.Move{
			Kind: policy.Resize, Job: job.ID, Units: units, Reason: reason,
		})
	}
	return moves
}

// largest returns the largest number of units on a curve that fits, 0 if none does.
func largest(curve policy.Curve, free int) int {
	units := 0
	for _, p := range curve {
		if p.Rate > 0 && p.Units <= free {
			units = max(units, p.Units)
		}
	}
	return units
}

// stopExcess stops the last jobs if the jobs hold more units than there are.
func stopExcess(jobs []*policy.ElasticJob, capacity int) []policy.Move {
	held := 0
	for _, job := range jobs {
		held += max(0, job.Units)
	}
	var moves []policy.Move
	for _, job := range slices.Backward(jobs) {
		if held > capacity && job.Units > 0 {
			held -= job.Units
			moves = append(moves, policy.Move{
				Kind: policy.Resize, Job: job.ID, Reason: policy.ReasonYield,
			})
		}
	}
	return moves
}
