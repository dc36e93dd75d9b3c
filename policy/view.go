// Package policy contains what all scheduling policies share: the view of a cluster that a policy
// reads, the moves that it returns, and the rules that every decision must keep.
//
// A policy is a pure function: Plan(view, now) returns the moves for a state of the cluster. It has
// no clock, network or randomness of its own, so the same code can run in a simulator, over a
// replayed event log and in a service. The policies are deadline (the default) and elasticflow,
// which are sub-packages, EDF and JCT. Others have views of their own: quality divides the CPU of a
// node by the fall of the loss, fit resizes jobs by their bottlenecks, and cost plans tunings.
//
// Capacity is counted in units: GPUs, CPUs or workers. A job holds one of the numbers of units on
// its curve, or none. A moment is a time at which the number of units of some job starts or changes;
// two moments are at least ClusterView.Slot apart, and running jobs pause at a moment (Pause). Refusing,
// admitting or stopping jobs is not a moment.
//
// A policy must not modify the view. It may be called concurrently. Check returns which rule a
// decision breaks; simulators call it after each decision, and fuzz tests of the policies rely on
// it.
package policy

import (
	"math"
	"time"
)

// RecentJobs bounds ClusterView.Recent.
const RecentJobs = 200

// ClusterView is the state of a cluster at the time of a decision.
type ClusterView struct {
	Units int // capacity
	// Jobs are the admitted, unfinished jobs, in order of admission.
	Jobs []ElasticJob
	// Queue contains the submitted jobs that were neither admitted nor refused.
	Queue []ElasticJob
	// Recent are the last submitted jobs, at most RecentJobs of them, as they were when they were
	// submitted. They show what future jobs may need.
	Recent []ElasticJob

	// Slot is the minimum time between two moments. Zero: moments may follow each other at any
	// distance.
	Slot time.Duration
	// Moments is the number of moments so far, and LastMoment the time of the last one.
	Moments    int
	LastMoment time.Time
	Pause      Pause
}

// NextMoment returns the earliest time, now or later, at which a moment may be.
func (v *ClusterView) NextMoment(now time.Time) time.Time {
	if v.Moments == 0 {
		return now
	}
	if next := v.LastMoment.Add(v.Slot); next.After(now) {
		return next
	}
	return now
}

// ElasticJob is a training job.
type ElasticJob struct {
	ID        string
	Submitted time.Time
	// Deadline is the time at which the job must have ended. Zero: no deadline.
	Deadline time.Time
	// Options are the ways to run the job, the requested one first. A queued job may be admitted
	// with any of them; an admitted job has exactly one.
	Options []Option
	// Units is the number of units that the job holds now; 0 for a job that does not run.
	Units int
	// PausedUntil is the end of the current pause; in the past if the job makes progress.
	PausedUntil time.Time
}

// Option is a way to run a job, for example a batch size.
type Option struct {
	// Work is what remains to be done, in the units of the curve's rates, for example iterations.
	Work  float64
	Curve Curve
}

// Pause describes how long running jobs stand still at a moment.
type Pause struct {
	Base        time.Duration // every charged job
	PerDoubling time.Duration // times log2(units) + 1 for a job that changes
	Restart     time.Duration // added at every RestartEvery-th moment
	// RestartEvery is the distance of restarts in moments; 0: there are none.
	RestartEvery int
	Charge       Charge
}

// Charge determines which jobs pause at a moment.
type Charge string

// Charges, from the most to the least expensive.
const (
	ChargeAll     Charge = "all"     // every running job, as if it had changed
	ChargeRounds  Charge = "rounds"  // every running job; only Base if it did not change
	ChargeChanged Charge = "changed" // only jobs that change; there are no restarts
	ChargeNone    Charge = "none"    // no job
)

// Restarts reports whether the moment with this number, the first being 0, restarts all jobs.
func (p *Pause) Restarts(moment int) bool {
	charged := p.Charge == ChargeAll || p.Charge == ChargeRounds
	return charged && p.RestartEvery > 0 && moment > 0 && moment%p.RestartEvery == 0
}

// Seconds returns how long a job with this number of units pauses at a moment.
func (p *Pause) Seconds(units int, isChanged, isRestart bool) float64 {
	switch {
	case units <= 0 || p.Charge == ChargeNone:
		return 0
	case p.Charge == ChargeChanged && !isChanged:
		return 0
	case p.Charge == ChargeRounds && !isChanged && !isRestart:
		return p.Base.Seconds()
	}
	seconds := p.Base.Seconds() + p.PerDoubling.Seconds()*(math.Log2(float64(units))+1)
	if isRestart {
		seconds += p.Restart.Seconds()
	}
	return seconds
}

// MoveDecision is what a policy wants to happen now.
type MoveDecision struct {
	Moves []Move
	// ReviewAt is when the policy wants to be called although nothing else happens; zero: at the
	// next submission or end of a job.
	ReviewAt time.Time
}

// Kind is what a move does.
type Kind string

// Kinds of moves.
const (
	Admit  Kind = "admit"  // promise a queued job its deadline, with one of its options
	Refuse Kind = "refuse" // refuse a queued job for good
	Resize Kind = "resize" // change the number of units of an admitted job; 0 stops it
)

// Move is one change. A job that is admitted and starts at once has two moves, Admit first.
type Move struct {
	Kind   Kind
	Job    string // ID
	Option int    // for Admit: index of the job's option
	Units  int    // for Resize: number of units from now on
	Reason Reason
}

// Reason is why a policy returned a move.
type Reason string

// Reasons of moves.
const (
	ReasonFits       Reason = "fits"        // all promises and this deadline can be met
	ReasonUnlimited  Reason = "unlimited"   // the policy admits every job
	ReasonTooSlow    Reason = "too slow"    // an empty cluster would not meet the deadline
	ReasonNoCapacity Reason = "no capacity" // promises to other jobs leave too little capacity
	ReasonTooCostly  Reason = "too costly"  // the job would take the place of several others
	ReasonRound      Reason = "round"       // another arrival of the same round does not fit
	ReasonShare      Reason = "share"       // minimum share to the deadline
	ReasonLeftOver   Reason = "left over"   // more than the minimum share
	ReasonYield      Reason = "yield"       // the units are needed by other jobs
	ReasonGrowing    Reason = "growing"     // the loss falls fast
	ReasonNewcomer   Reason = "newcomer"    // the fall of the loss is not known yet
	ReasonWatched    Reason = "watched"     // the loss hardly fell once, or it rises
	ReasonCompleting Reason = "completing"  // the loss hardly fell twice
	ReasonStale      Reason = "stale"       // the loss is too old to plan from
	ReasonCost       Reason = "least cost"  // the fewest unit-seconds
	ReasonOwnEpochs  Reason = "own epochs"  // the job's own epochs show that it would be faster
)

// A Policy decides about a cluster. See the package comment for its obligations.
type Policy interface {
	Plan(view *ClusterView, now time.Time) MoveDecision
}
