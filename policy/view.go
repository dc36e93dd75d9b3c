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
