// Package reserve keeps a part of a cluster for small jobs, so that they do not wait behind large ones.
//
// It implements DRESS (Mao et al., IEEE CLOUD 2018): jobs are small or large by the units that they
// demand, each class has a part of the cluster, and the parts follow pending demands and expected
// releases. A job demands its largest number of units, waits until they are free in the part of its
// class, and keeps them to its end. In a class, jobs start in the order of admission. No job is
// refused that the cluster could run, and deadlines are ignored. A job that demands more than the part
// of its class waits until the other class leaves it enough.
//
// The package also has two simpler rules without parts: first come, first served, and first fit, where
// a job may start before an earlier one that does not fit.
package reserve

import (
	"cmp"
	"math"
	"time"

	"courier/policy"
)

// Rule is how waiting jobs start.
type Rule string

// Rules.
const (
	RuleReserve  Rule = ""          // two classes with a part of the cluster each
	RuleFirst    Rule = "fifo"      // first come, first served
	RuleFirstFit Rule = "first fit" // the first jobs that fit
)

// Options of a policy.
type Options struct {
	Rule Rule
	// SmallRatio is the largest demand of a small job, divided by the capacity. Default: 0.1.
	SmallRatio float64
	// ReservedRatio is the part of the capacity for small jobs, before it follows demands. Default: 0.1.
	ReservedRatio float64
	// Horizon is the time in which releases are expected. Default: one minute.
	Horizon time.Duration
}

// Policy starts waiting jobs. It is safe for concurrent use.
type Policy struct{ o Options }

// New returns a policy.
func New(o Options) *Policy {
	o.SmallRatio = cmp.Or(o.SmallRatio, 0.1)
	o.ReservedRatio = cmp.Or(o.ReservedRatio, 0.1)
	o.Horizon = cmp.Or(o.Horizon, time.Minute)
	return &Policy{o}
}

// request is a job with the units that it demands.
type request struct {
	*policy.ElasticJob
	option *policy.Option
	demand int // 0: the cluster is too small for it
}

// Plan implements policy.Policy.
func (p *Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	var d policy.MoveDecision
	capacity := view.Units()
	var requests []request
	for i := range view.Jobs {
		requests = append(requests, newRequest(&view.Jobs[i], capacity))
	}
	for i := range view.Queue {
		r := newRequest(&view.Queue[i], capacity)
		if r.demand == 0 {
			d.Moves = append(d.Moves, policy.Move{Kind: policy.Refuse, Job: r.ID, Reason: policy.ReasonTooSlow})
			continue
		}
		d.Moves = append(d.Moves, policy.Move{Kind: policy.Admit, Job: r.ID, Reason: policy.ReasonUnlimited})
		requests = append(requests, r)
	}

	free := capacity
	for i := range requests {
		free -= requests[i].Units
	}
	if free < 0 {
		d.Moves = append(d.Moves, stop(requests, -free)...)
		return d
	}
	if start := view.NextMoment(now); start.After(now) {
		d.ReviewAt = start
		return d
	}
	d.Moves = append(d.Moves, p.start(requests, capacity, free)...)
	return d
}

func newRequest(job *policy.ElasticJob, capacity int) request {
	r := request{ElasticJob: job, option: &policy.Option{}}
	if len(job.Options) > 0 {
		r.option = &job.Options[0]
	}
	for _, p := range r.option.Curve {
		if p.Rate > 0 && p.Units <= capacity {
			r.demand = max(r.demand, p.Units)
		}
	}
	return r
}

// stop stops the last running jobs, because the capacity fell by more units than are free.
func stop(requests []request, excess int) (moves []policy.Move) {
	for i := len(requests) - 1; i >= 0 && excess > 0; i-- {
		if r := &requests[i]; r.Units > 0 {
			moves = append(moves, policy.Move{Kind: policy.Resize, Job: r.ID, Reason: policy.ReasonYield})
			excess -= r.Units
		}
	}
	return moves
}

// start starts waiting jobs in the free units.
func (p *Policy) start(requests []request, capacity, free int) (moves []policy.Move) {
	classes := p.classes(requests, capacity)
	for i := range requests {
		r := &requests[i]
		c := &classes[p.classOf(r, capacity)]
		if r.Units > 0 || r.demand == 0 || c.isBlocked {
			continue
		}
		if r.demand > free || r.demand > c.part-c.held {
			c.isBlocked = p.o.Rule != RuleFirstFit
			continue
		}
		moves = append(moves, policy.Move{
			Kind: policy.Resize, Job: r.ID, Units: r.demand, Reason: policy.ReasonShare,
		})
		free -= r.demand
		c.held += r.demand
	}
	return moves
}

// expected reports whether a running job releases its units within the horizon.
func (p *Policy) expected(r *request) bool {
	seconds := r.option.Work / r.option.Curve.Rate(r.Units)
	return !math.IsNaN(seconds) && seconds <= p.o.Horizon.Seconds()
}
