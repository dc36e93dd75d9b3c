// Package jct keeps the mean completion time short: shortest predicted remaining time first.
//
// At each submission and end, all jobs are ordered by the time that their remaining work takes at
// the fastest rate that the cluster allows. In this order, each job takes the fastest number of
// units that is free. A queued job is admitted with the option that ends first. No job is refused,
// deadlines are ignored, and a long job may wait forever.
//
// On one machine the rule is optimal for exact predictions (Schrage, Operations Research 16, 1968).
package jct

import (
	"cmp"
	"math"
	"time"

	"courier/policy"
)

// Policy is the policy for completion times. It is safe for concurrent use.
type Policy struct{}

// New returns the policy.
func New() *Policy { return &Policy{} }

// Plan implements policy.Policy.
func (*Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	capacity := view.Units()
	ordering := policy.Ordering{
		Choose: func(job *policy.ElasticJob) int { return soonest(job, capacity) },
		Compare: func(a, b *policy.Contender) int {
			return cmp.Compare(remainingSeconds(a.Option, capacity), remainingSeconds(b.Option, capacity))
		},
		Units: func(c policy.Curve, free int) int { return fastest(c, free).Units },
	}
	return ordering.Plan(view, now)
}

// soonest returns the index of the option of a job that ends first.
func soonest(job *policy.ElasticJob, capacity int) int {
	best, seconds := 0, math.Inf(1)
	for i := range job.Options {
		if s := remainingSeconds(&job.Options[i], capacity); s < seconds {
			best, seconds = i, s
		}
	}
	return best
}

// remainingSeconds returns the time that an option needs at its fastest rate; +Inf if it has none.
// Work that is not a number counts as none.
func remainingSeconds(o *policy.Option, capacity int) float64 {
	rate := fastest(o.Curve, capacity).Rate
	if !(rate > 0) {
		return math.Inf(1)
	}
	if !(o.Work > 0) {
		return 0
	}
	return o.Work / rate
}

// fastest returns the fastest point of a curve with at most this many units, the one with fewer
// units if several are as fast.
func fastest(c policy.Curve, units int) policy.CurvePoint {
	var best policy.CurvePoint
	for _, p := range c {
		if p.Units > 0 && p.Units <= units && p.Rate > best.Rate {
			best = p
		}
	}
	return best
}
