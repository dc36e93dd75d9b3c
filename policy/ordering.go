package policy

import (
	"slices"
	"time"
)

// Contender is an admitted or queued job with the option that it runs with.
type Contender struct {
	Job    *ElasticJob
	Option *Option
}

// Ordering is a policy without promises: it admits every job that has an option, and serves the jobs
// in an order at each call. It implements Policy.
type Ordering struct {
	// Choose returns the index of the option of a queued job, which has at least one.
	Choose func(job *ElasticJob) int
	// Compare orders the jobs; equal ones keep the order of admission.
	Compare func(a, b *Contender) int
	// Units returns the number of units on a curve that a job gets if this many are free.
	Units func(c Curve, free int) int
}

// Plan implements Policy.
func (o *Ordering) Plan(view *ClusterView, now time.Time) MoveDecision {
	var d MoveDecision
	var contenders []Contender
	for i := range view.Jobs {
		job := &view.Jobs[i]
		c := Contender{job, &Option{}}
		if len(job.Options) > 0 {
			c.Option = &job.Options[0]
		}
		contenders = append(contenders, c)
	}
	for i := range view.Queue {
		job := &view.Queue[i]
		if len(job.Options) == 0 {
			d.Moves = append(d.Moves, Move{Kind: Refuse, Job: job.ID, Reason: ReasonTooSlow})
			continue
		}
		option := o.Choose(job)
		d.Moves = append(d.Moves, Move{Kind: Admit, Job: job.ID, Option: option, Reason: ReasonUnlimited})
		contenders = append(contenders, Contender{job, &job.Options[option]})
	}
	slices.SortStableFunc(contenders, func(a, b Contender) int { return o.Compare(&a, &b) })

	if start := view.NextMoment(now); start.After(now) {
		d.ReviewAt = start
		d.Moves = append(d.Moves, stopExcess(contenders, view.Units())...)
		return d
	}
	d.Moves = append(d.Moves, o.share(contenders, view.Units())...)
	return d
}

// share gives the units to the jobs in order.
func (o *Ordering) share(contenders []Contender, free int) []Move {
	var moves []Move
	for _, c := range contenders {
		units := o.Units(c.Option.Curve, free)
		free -= units
		if units == c.Job.Units {
			continue
		}
		reason := ReasonShare
		if units < c.Job.Units {
			reason = ReasonYield
		}
		moves = append(moves, Move{Kind: Resize, Job: c.Job.ID, Units: units, Reason: reason})
	}
	return moves
}

// stopExcess stops the last jobs if the jobs hold more units than there are.
func stopExcess(contenders []Contender, capacity int) []Move {
	held := 0
	for _, c := range contenders {
		held += max(0, c.Job.Units)
	}
	var moves []Move
	for _, c := range slices.Backward(contenders) {
		if held > capacity && c.Job.Units > 0 {
			held -= c.Job.Units
			moves = append(moves, Move{Kind: Resize, Job: c.Job.ID, Reason: ReasonYield})
		}
	}
	return moves
}
