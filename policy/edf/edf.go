// Package edf is a baseline without elasticity or admission: earliest deadline first.
//
// At each submission and end, all jobs are ordered by deadline. Each takes its largest number of
// units if that many are free, otherwise the largest number on its curve that fits. No job is
// refused, and a late job keeps its place. These are the rules of "EDF" in ElasticFlow (Gu et al.,
// ASPLOS 2023).
package edf

import (
	"time"

	"courier/policy"
)

// Policy is the EDF policy. It is safe for concurrent use.
type Policy struct {
	ordering policy.Ordering
}

// New returns the policy.
func New() *Policy {
	return &Policy{policy.Ordering{
		Choose:  func(*policy.ElasticJob) int { return 0 },
		Compare: byDeadline,
		Units:   largest,
	}}
}

// Plan implements policy.Policy.
func (p *Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	return p.ordering.Plan(view, now)
}

// byDeadline orders jobs; those without a deadline are last.
func byDeadline(a, b *policy.Contender) int {
	switch {
	case a.Job.Deadline.IsZero() && b.Job.Deadline.IsZero():
		return 0
	case a.Job.Deadline.IsZero():
		return 1
	case b.Job.Deadline.IsZero():
		return -1
	}
	return a.Job.Deadline.Compare(b.Job.Deadline)
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
