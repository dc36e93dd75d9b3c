// Package policy contains what all scheduling policies share: the view of a cluster that a policy
// reads, the moves that it returns, and the rules that hold for every one of them.
//
// A policy is a pure function: Plan(view) returns the moves for a state of the cluster. It has no
// clock, network or randomness of its own, so the same code runs in the advisor, in a simulator and
// over a replayed event log. The policies are
//
//   - deadline: the most deadlines are kept (the default),
//   - JCT: the mean completion time is short,
//   - quality: CPU goes to the jobs whose loss falls fastest (FlowCon),
//   - cost: each job takes few unit-seconds (CE-scaling),
//   - fit: trainings get the workers and cores that their bottlenecks need (NEARCHUS); on a node,
//     CPUs go to the jobs that they make faster,
//   - EDF and elasticflow, which are baselines.
//
// Guard adds the rules above all policies, for the running jobs of a node: promised deadlines are kept,
// no job is stopped, small changes and changes of jobs that changed lately are left out, and the jobs
// fit.
//
// Capacity is counted in units: GPUs, CPUs or workers. A job holds one of the numbers of units on
// its curve, or none. A moment is a time at which the number of units of some job starts or changes;
// two moments are at least View.Slot apart, and running jobs pause at a moment (Pause). Refusing,
// admitting or stopping jobs is not a moment.
//
// A policy must not modify the view. It may be called concurrently. Tests compare the moves of all
// policies on random views with the rules.
package policy

import (
	"cmp"
	"math"
	"time"

	"courier/policy/speed"
	"courier/schemas"
)

// RecentJobs bounds View.Recent.
const RecentJobs = 200

// View is the state of a cluster, or of one of its nodes, at the time of a decision.
type View struct {
	Now   time.Time
	Units int // capacity for the jobs
	// Cores is the size of the node, including what other work holds; 0: not a node.
	Cores int
	// Jobs are the admitted, unfinished jobs, in order of admission.
	Jobs []Job
	// Queue contains the submitted jobs that were neither admitted nor refused.
	Queue []Job
	// Recent are the last submitted jobs, at most RecentJobs of them, as they were when they were
	// submitted. They show what future jobs may need.
	Recent []Job

	// Slot is the minimum time between two moments. Zero: moments may follow each other at any
	// distance.
	Slot time.Duration
	// Moments is the number of moments so far, and LastMoment the time of the last one.
	Moments    int
	LastMoment time.Time
	Pause      Pause
}

// NextMoment returns the earliest time, now or later, at which a moment may be.
func (v *View) NextMoment() time.Time {
	if next := v.LastMoment.Add(v.Slot); v.Moments > 0 && next.After(v.Now) {
		return next
	}
	return v.Now
}

// Job is a training job.
type Job struct {
	ID        string
	Submitted time.Time
	// Deadline is the time at which the job must have ended. Zero: no deadline.
	Deadline time.Time
	// Confidence is the probability with which the deadline was promised; 0 if rates are exact. A
	// number of units keeps the promise if its CurvePoint.Chance is as high.
	Confidence float64
	// Options are the ways to run the job, the requested one first. A queued job may be admitted
	// with any of them; an admitted job has exactly one.
	Options []Option
	// Units is the number of units that the job holds now; 0 for a job that does not run.
	Units int
	// PausedUntil is the end of the current pause; in the past if the job makes progress.
	PausedUntil time.Time

	// IsFixed: nothing is known about the job with other units, or moves are turned off. Its units stay.
	IsFixed bool
	// Epochs is the number of epochs of the whole run; 0: unknown. HasMoved: the units of the run have
	// changed, the last time EpochsSinceMove epochs ago.
	Epochs          int
	HasMoved        bool
	EpochsSinceMove int
	// Floor is the number of units that other jobs cannot get. Guard sets it to the fewest units with
	// which the job keeps its promise, as far as all of them fit.
	Floor int
	// Share is the present share of a node that weights divide, 0 to 1; 0: none yet.
	Share float64
	// Losses are the last losses of the job; nil if it reports none.
	Losses *Losses

	// Allowed are the numbers of units that the job may hold, ascending, including unmeasured ones.
	Allowed []int
	// Training is what the job's steps show; nil if policy/fit is to leave the job alone.
	Training *Training
}

// Training describes a running job by its steps. Its units are the cores of its shape.
type Training struct {
	Facts speed.Facts
	// Requested is the shape that the owner asked for. A job that gives up cores still ends no later
	// than it would have with this shape.
	Requested, Shape speed.Shape
	// Window has the last reports since the latest change of the shape, Seen the times of all shapes.
	Window []speed.StepReport
	Seen   []speed.ShapeTime
	Model  *speed.Model // nil: only Seen is known
	// Bottleneck is the one that the window shows, for a job on a node; "" if none.
	Bottleneck schemas.Bottleneck

	Elapsed          time.Duration // since the start of the job
	DoneSamples      float64
	RemainingSamples float64       // if all of them are trained with Facts.SamplesPerWorker
	Pause            time.Duration // of the job at a change of its shape
	Record           Record        // from the previous decision
}

// Record is what the caller has to remember about the moves of a training between two decisions.
type Record struct {
	Trial     *Trial // the latest move, until it is judged
	Fruitless int    // consecutive moves without the predicted gain
	RestUntil time.Time
	Barred    []BarredShape
}

// BarredShape is a shape that a job must not have again for some time.
type BarredShape struct {
	Shape speed.Shape
	Until time.Time
}

// Trial is a move that was not judged yet.
type Trial struct {
	From speed.Shape
	// StepSeconds and Reports are those of the last window in the former shape.
	StepSeconds float64
	Reports     int
	// Gain is the predicted logarithm of the relative speed, plus that of the cores that a
	// shrinking job needs less.
	Gain     float64
	IsShrink bool
}

// curve returns the numbers of units that a running job may hold; none if weights divide the node.
func (j *Job) curve() Curve {
	if len(j.Options) == 0 {
		return nil
	}
	return j.Options[0].Curve
}

// leastUnits returns the fewest units with which a running job runs.
func (j *Job) leastUnits() int {
	if c := j.curve(); len(c) > 0 {
		return min(c[0].Units, j.Units)
	}
	return j.Units
}

// KeepsDeadline reports whether a running job meets its deadline with a number of units, with at least
// the probability that it was promised. A job without a deadline always does.
func (j *Job) KeepsDeadline(v *View, units int) bool { return j.keeps(v, units, j.Confidence) }

// clearRatio is the part of the range above the promised probability that is a clear margin.
const clearRatio = 0.25

// KeepsClearly is KeepsDeadline with a margin.
func (j *Job) KeepsClearly(v *View, units int) bool {
	return j.keeps(v, units, j.Confidence+clearRatio*(1-j.Confidence))
}

func (j *Job) keeps(v *View, units int, confidence float64) bool {
	if j.Deadline.IsZero() {
		return true
	}
	p := j.curve().point(units)
	if j.Confidence > 0 {
		return p != nil && p.Chance >= confidence
	}
	return p != nil && p.Rate*j.Deadline.Sub(v.Now).Seconds() >= j.Options[0].Work
}

// ExpectedSeconds returns the expected time to the end of a running job with a number of units; +Inf if
// it is unknown.
func (j *Job) ExpectedSeconds(units int) float64 {
	if p := j.curve().point(units); p != nil && p.Rate > 0 {
		return j.Options[0].Work / cmp.Or(p.MeanRate, p.Rate)
	}
	return math.Inf(1)
}

// Losses is what a run of a job has reported about its loss. Losses are compared after a division by
// their scale, so their unit does not matter.
type Losses struct {
	Reports []LossReport // the last ones, oldest first
	Largest float64      // largest loss of the run
	First   float64      // first loss of the run
	// Final is the predicted last loss; nil: unknown.
	Final         *float64
	SilentSeconds float64 // since the last report
}

// LossReport is a loss that a job reported.
type LossReport struct {
	Seconds float64 // since the previous report; for the first one, since the start
	Loss    float64 // mean since the previous report; 1 - accuracy of a job without a loss

	CPURatio    float64 // mean CPU since the previous report as a share of the node
	IORatio     float64 // the job's share of the IO of the node; 0: unknown
	IOWaitRatio float64 // mean share of the node's CPUs that waited for IO
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

// Kind is what a move does.
type Kind string

// Kinds of moves.
const (
	Admit  Kind = "admit"  // promise a queued job its deadline, with one of its options
	Refuse Kind = "refuse" // refuse a queued job for good
	Resize Kind = "resize" // change the number of units of an admitted job; 0 stops it
	Weigh  Kind = "weigh"  // set the share of a running job on a node that weights divide
	Review Kind = "review" // ask the policy again at a time, although nothing else happens
)

// Move is one change. A job that is admitted and starts at once has two moves, Admit first.
type Move struct {
	Kind   Kind
	Job    string // ID
	Option int    // for Admit: index of the job's option
	Units  int    // for Resize: number of units from now on
	// Share is that of the node for Weigh, 0 to 1.
	Share  float64
	At     time.Time // for Review, which names no job; later than now
	Reason Reason
	// Growth is the fall of the job's loss per second and CPU, by policy/quality; 0: unknown.
	Growth float64
	// Shape is that of a job with a Training from now on; its cores are Units.
	Shape speed.Shape
	// SpeedRatio is the predicted speed divided by the present one, LowerSpeedRatio its lower bound, by
	// policy/fit; 0: unknown.
	SpeedRatio, LowerSpeedRatio float64
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
	ReasonShare      Reason = "share"       // minimum share to the deadline
	ReasonLeftOver   Reason = "left over"   // more than the minimum share
	ReasonYield      Reason = "yield"       // the units are needed by other jobs
	ReasonGrowing    Reason = "growing"     // the loss falls fast
	ReasonNewcomer   Reason = "newcomer"    // the fall of the loss is not known yet
	ReasonWatched    Reason = "watched"     // the loss hardly fell once, or it rises
	ReasonCompleting Reason = "completing"  // the loss hardly fell twice
	ReasonCost       Reason = "least cost"  // the fewest unit-seconds

	// Of policy/fit.
	ReasonShrink   Reason = "shrink"   // a queue waits, and the job ends in time with fewer cores
	ReasonExchange Reason = "exchange" // faster with the same cores or fewer
	ReasonGrow     Reason = "grow"     // cores are free, and nobody waits for them
	ReasonUndo     Reason = "undo"     // the previous move brought less than half of its gain
	ReasonRestore  Reason = "restore"  // the job gave up cores and would now end too late
	ReasonSurplus  Reason = "surplus"  // the job hardly uses the cores
)

// A Policy decides about a cluster. See the package comment for its obligations.
type Policy interface {
	Plan(v *View) []Move
}
