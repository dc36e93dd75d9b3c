package advisor

import (
	"strconv"
	"strings"
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

func (j *Job) submitted(e *schemas.Submitted) bool {
	if j.Submitted != nil {
		return false
	}
	kept := *e
	kept.EncodedAdvice = nil // a second copy of the advice
	j.Submitted, j.User = &kept, e.Request.User
	if j.State != "" {
		return true
	}
	j.State, j.Advice = schemas.StateSubmitted, &kept.Advice
	switch v := e.Advice.Admission; {
	case v != nil && v.Verdict == schemas.Refused:
		j.State, j.Reason = schemas.StateRefused, why(&e.Advice)
	case v != nil && v.Verdict == schemas.Queued:
		j.State, j.Reason = schemas.StateQueued, why(&e.Advice)
	default:
		j.Promise = &kept.Advice
	}
	return true
}

// why is what a policy says in the message of an advice, without its figures.
func why(a *schemas.Advice) string {
	verdict, _, _ := strings.Cut(a.Message, ": ")
	return verdict
}

// admitted ends the waiting of a queued job.
func (j *Job) admitted(e *schemas.Advice) bool {
	if j.State != schemas.StateQueued {
		return false
	}
	j.State, j.Promise, j.Advice, j.Reason = schemas.StateSubmitted, e, e, ""
	return true
}

func (j *Job) started(e *schemas.Started, storedAt time.Time) bool {
	if e.Run <= j.Run {
		return false
	}
	j.begin(e.BatchSize)
	j.State, j.Run, j.Setting, j.heartbeat = schemas.StateRunning, e.Run, e.Setting, e.HeartbeatSeconds > 0
	j.behind = 0
	if j.Submitted != nil {
		j.behind = max(0, j.Submitted.At.Sub(e.At))
	}
	j.StartedAt, j.EndedAt, j.EpochsDone, j.LongestEpoch, j.Accuracy, j.Reason, j.MetSLO = j.happened(
		e.At, storedAt,
	), time.Time{}, 0, 0, nil, "", nil
	if e.User != "" {
		j.User = e.User
	}
	return true
}

// begin notes the batch size that a run begins with.
func (j *Job) begin(batch uint32) { j.began, j.changed = batch, false }

func (j *Job) epoch(e *schemas.Epoch, storedAt time.Time) bool {
	if e.Run < j.Run || e.Run == j.Run && e.Epoch <= j.EpochsDone || j.over() && e.Run == j.Run {
		return false
	}
	if e.Run > j.Run {
		j.begin(e.BatchSize)
	}
	j.changed = j.changed || e.BatchSize != j.began
	if e.Run > j.Run || j.State != schemas.StateRunning { // its start was lost, or it is back from being lost
		j.State, j.Run, j.EndedAt, j.Reason = schemas.StateRunning, e.Run, time.Time{}, ""
	}
	if j.StartedAt.IsZero() {
		j.StartedAt = j.happened(e.At, storedAt).Add(
			-time.Duration(e.DurationSeconds * float64(time.Second)),
		)
	}
	j.Setting, j.EpochsDone = e.Setting, e.Epoch
	j.LongestEpoch = max(j.LongestEpoch, time.Duration(e.DurationSeconds*float64(time.Second)))
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	return true
}

// happened is when something happened to a job, where the clock of its runner
// cannot be right: nothing starts before it was asked for, and nothing is stored
// before it happened. What is stored late, from a spool, keeps its own time.
func (j *Job) happened(at, storedAt time.Time) time.Time {
	if at = at.Add(j.behind); storedAt.Before(at) {
		return storedAt
	}
	return at
}

// over reports whether the run has ended for good; lost is not for good.
func (j *Job) over() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed ||
		j.State == schemas.StateCancelled
}

func (j *Job) ended(e *schemas.Ended, storedAt time.Time) bool {
	switch {
	case e.Run < j.Run, j.over() && e.Run == j.Run:
		return false
	case e.Outcome == schemas.EventLost:
		if j.State != schemas.StateRunning || j.heardSince(e) {
			return false
		}
	case e.Outcome == schemas.EventCancelled:
		j.Run = e.Run // of a run that began unseen: it is over, too
	default:
		if e.Run > j.Run {
			j.begin(e.BatchSize)
		}
		j.Run, j.Setting = e.Run, e.Setting
		j.EpochsDone = max(j.EpochsDone, e.EpochsDone)
	}
	j.State, j.EndedAt, j.Reason = schemas.State(e.Outcome), j.happened(e.At, storedAt), e.Reason
	if e.Accuracy != nil {
		j.Accuracy = e.Accuracy
	}
	if j.Submitted != nil && j.Submitted.Request.SLO > 0 && e.Outcome != schemas.EventLost {
		met := e.Outcome == schemas.EventFinished && !j.trainedAt().After(j.deadline())
		j.MetSLO = &met
	}
	return true
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

// heardSince reports whether an event of the job came after the one that a lost event names
// as the last: the job was heard meanwhile, or the lost event is a copy of an old one.
func (j *Job) heardSince(e *schemas.Ended) bool {
	text, isLost := strings.CutSuffix(strings.TrimPrefix(e.EventID, j.ID+"/"), "/lost")
	last, err := strconv.ParseUint(text, 10, 64)
	return isLost && err == nil && last < j.last
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
