package advisor

import (
	"time"

	"courier/schemas"
)

// Job is what the log says of one job.
type Job struct {
	ID           string
	State        schemas.State
	Submitted    *schemas.Submitted // nil: it was started without a request
	Promise      *schemas.Advice    // that it may rely on: the answer to its request, or what ended its waiting; nil: none
	Setting      schemas.Setting    // of the last run
	Run          uint32
	Hardware     []schemas.Hardware // of its nodes, in their order
	User         string
	StartedAt    time.Time
	EndedAt      time.Time
	EpochsDone   uint32
	LongestEpoch time.Duration // of this run
	Accuracy     *float64
	Reason       string
	Advice       *schemas.Advice // the last one; of one for a running job only what lastAdvice keeps
	MetSLO       *bool
	Risk         *schemas.Risk // the last warning or all-clear

	began      uint32        // batch size that the last run began with
	changed    bool          // it has run with another one since
	laps       []lap         // the last epochs of this run
	mark       []tally       // of its nodes, when it started or ended its last epoch
	progressAt time.Time     // then, by the server's clock
	usage      schemas.Usage // in its last epoch
	ioWait     float64       // of its node in its last epoch, 0 if nobody knows
	epochAt    time.Time     // when its last epoch ended
	behind     time.Duration // by which the clock of its runner is slow at least; it started before it was asked for

	first     uint64    // sequence of its first event: the order of job.list
	last      uint64    // sequence of its last event, advice left aside
	heard     time.Time // last sign of life, by this process's or the server's clock
	heartbeat bool      // it promised to say that it is alive

	filed       uint64 // its place among the ended jobs; 0: it is not one of them
	due         uint64 // when it counts as abandoned, in Unix nanoseconds; 0: it has started, or waits
	countedLost bool   // in the score
}

// keptLaps is how many of a run's last epochs correct its prediction.
const keptLaps = 8

// lap is an epoch as the advisor saw it: how long it took, and what load
// surrounded it, time-weighted.
type lap struct {
	batch   uint32 // batch size that it ran with
	seconds float64
	load    surroundings
	node    string // where it is that
}

// surroundings are the load that a job has, and the node where it has that.
type surroundings struct {
	schemas.Load
	on schemas.Hardware
}

// over reports whether the run has ended for good; lost is not for good.
func (j *Job) over() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed ||
		j.State == schemas.StateCancelled
}

// resting reports whether the job has come to an end that may be final: a lost job may come
// back, a refused one may be started all the same, and any may run again.
func (j *Job) resting() bool {
	switch j.State {
	case schemas.StateSubmitted, schemas.StateQueued, schemas.StateRunning:
		return false
	}
	return true
}

// admittedByPolicy reports whether a policy has admitted the job, and it has not started.
func (j *Job) admittedByPolicy() bool {
	p := j.Promise
	return j.State == schemas.StateSubmitted && p != nil && p.Admission != nil && p.Chosen != nil
}

// deadline is submission plus SLO; zero without one.
func (j *Job) deadline() time.Time {
	if j.Submitted == nil || j.Submitted.Request.SLO == 0 {
		return time.Time{}
	}
	return j.Submitted.At.Add(time.Duration(j.Submitted.Request.SLO))
}

// trainedAt is when a job that ended was done: at the end of its last epoch,
// whatever it does afterwards; without one, at its end.
func (j *Job) trainedAt() time.Time {
	if j.epochAt.IsZero() || j.EpochsDone < j.Setting.Epochs {
		return j.EndedAt
	}
	return j.epochAt
}

// pending reports whether the job waits, is about to start, or runs.
func (j *Job) pending() bool {
	switch j.State {
	case schemas.StateSubmitted, schemas.StateQueued, schemas.StateRunning:
		return true
	}
	return false
}

// expected reports whether a job was admitted by a policy and is about to start.
func (j *Job) expected(now time.Time) bool {
	return j.admittedByPolicy() && now.Sub(j.Promise.At) < startPatience
}

// hasDeadline reports whether the job was submitted with an SLO.
func (j *Job) hasDeadline() bool { return j.Submitted != nil && j.Submitted.Request.SLO > 0 }

// asAdvised reports whether the first run of a job began as its advice chose. A
// batch size that was changed since does not take the promise back.
func (j *Job) asAdvised() bool {
	if j.Promise == nil || j.Run != 1 || j.Promise.Chosen == nil {
		return false
	}
	s, chosen := &j.Setting, j.Promise.Chosen
	return j.began == chosen.BatchSize && s.CPUs == chosen.CPUs && s.Epochs == chosen.Epochs
}

// promisedCPUs is how many CPUs a job will use as it was promised.
func (j *Job) promisedCPUs() float64 { return float64(j.Promise.Chosen.CPUs) }

// processesPerNode is how many processes of the job are on each of its nodes.
func (j *Job) processesPerNode() float64 {
	return float64(j.Setting.CPUs) / float64(max(1, len(j.Setting.Nodes)))
}

// known returns about when the first event of a job that runs was stored.
func (j *Job) known() time.Time {
	if j.Submitted != nil {
		return j.Submitted.At
	}
	return j.StartedAt
}

// Outcome is what became of a submission with an SLO.
type Outcome struct {
	JobID       string
	Submitted   *schemas.Submitted // the request and its answer
	Promise     *schemas.Advice    // that answer, or the one that ended its waiting; nil: it was refused
	Ran         schemas.Setting
	AsAdvised   bool     // it ran with the batch size, CPUs and epochs that were advised
	Kept        bool     // it finished within its SLO
	Finished    bool     // it did all that it was to do
	WaitSeconds float64  // from submission to start
	RunSeconds  float64  // from its start to the end of its last epoch; 0 if the log does not tell of its start
	Accuracy    *float64 // of its last epoch; nil if nobody measured it
}

// Outcome returns what became of the job; ok is false where nothing can be
// learnt about a promise: it has no SLO, was started more than once, or has not
// ended by itself.
func (j *Job) Outcome() (o Outcome, ok bool) {
	ended := j.State == schemas.StateFinished || j.State == schemas.StateFailed
	if !ended || j.Submitted == nil || j.Run != 1 || j.MetSLO == nil {
		return o, false
	}
	o = Outcome{
		JobID:     j.ID,
		Submitted: j.Submitted,
		Promise:   j.Promise,
		Ran:       j.Setting,
		AsAdvised: j.asAdvised(),
		Kept:      *j.MetSLO,
		Accuracy:  j.Accuracy,
		Finished:  j.State == schemas.StateFinished && j.EpochsDone >= j.Setting.Epochs,
	}
	if !j.StartedAt.IsZero() {
		o.WaitSeconds, o.RunSeconds = max(0, j.StartedAt.Sub(j.Submitted.At).Seconds()), j.trainedAt().Sub(
			j.StartedAt,
		).Seconds()
	}
	return o, true
}
