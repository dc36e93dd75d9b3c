package advisor

import (
	"time"

	"courier/schemas"
)

// Job is the state of one job, as the event log describes it.
type Job struct {
	ID           string
	State        schemas.State
	Submitted    *schemas.Submitted // nil if it was started without a request
	Promise      *schemas.Advice    // the answer to its request, or its admission; nil if none
	Setting      schemas.Setting    // of the last run
	Run          uint32
	Hardware     []schemas.Hardware // of Setting.Nodes, in the same order
	User         string
	StartedAt    time.Time
	EndedAt      time.Time
	EpochsDone   uint32
	LongestEpoch time.Duration // of this run
	Accuracy     *float64
	Reason       string
	Advice       *schemas.Advice // the last one; for a running job reduced by lastAdvice
	MetSLO       *bool
	Risk         *schemas.Risk // the last warning or all-clear
	Divergence   *schemas.Risk // the same about its loss

	initialBatch    uint32          // batch size at the start of the last run
	initialCPUs     uint32          // CPUs at the start of the last run
	hasMoved        bool            // the run has changed its batch size or its CPUs
	isElastic       bool            // the runner can change the CPUs of the run
	barredMoves     []barredMove    // of this run, by end
	observedEpochs  []observedEpoch // the last epochs of this run
	loadAtLastEpoch []loadIntegral  // of its nodes, at its start or the end of its last epoch
	progressAt      time.Time       // time of loadAtLastEpoch, by the server's clock
	usage           schemas.Usage   // in its last epoch
	losses          lossHistory     // of this run
	uses            []epochUse      // of the last epochs with this batch size and these CPUs
	formerUses      []epochUse      // means of this run with other CPUs, the latest last
	grownFrom       uint32          // CPUs before it grew by its own epochs; 0 if it did not
	ioWait          float64         // of its node in its last epoch, 0 if unknown
	epochAt         time.Time       // end of its last epoch
	clockLag        time.Duration   // minimum lag of the runner's clock behind the submitter's

	first     uint64    // sequence of its first event
	listedAt  uint64    // its time, in Unix milliseconds: the order of job.list
	last      uint64    // sequence of its last event, without advice
	lastSeen  time.Time // last event or heartbeat, by the clock of this process or of the server
	heartbeat bool      // its runner sends heartbeats

	endOrder    uint64 // its position among the ended jobs; 0 if it is not one of them
	expiry      uint64 // unstartedExpiry in Unix nanoseconds; 0 if it cannot expire
	countedLost bool   // the score counts it as lost
}

// maxObservedEpochs bounds the last epochs of a run that correct its prediction.
const maxObservedEpochs = 8

// observedEpoch is the duration of an epoch and the time-weighted mean load during it.
type observedEpoch struct {
	batch   uint32 // batch size
	cpus    uint32
	seconds float64
	load    loadOnNode
	node    string // with the load
}

// loadOnNode is a load and the hardware of the node that has it.
type loadOnNode struct {
	schemas.Load
	on schemas.Hardware
}

// isOver reports whether the run has ended. A lost run has not: it may come back.
func (j *Job) isOver() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed ||
		j.State == schemas.StateCancelled
}

// isIncomplete reports whether the job finished with fewer epochs than it should have, or without
// recognized epochs. It meets no SLO then. A job that finished after its deadline is not incomplete,
// because it missed the SLO in any case.
func (j *Job) isIncomplete() bool {
	if j.State != schemas.StateFinished || j.EpochsDone >= j.Setting.Epochs {
		return false
	}
	return !j.hasDeadline() || !j.EndedAt.After(j.deadline())
}

// hasEnded reports whether the job may never change again. A lost job may still come back, a
// refused job may be started nevertheless, and any job may run again.
func (j *Job) hasEnded() bool {
	switch j.State {
	case schemas.StateSubmitted, schemas.StateQueued, schemas.StateRunning:
		return false
	}
	return true
}

// admittedByPolicy reports whether a policy has admitted the job and it has not started.
func (j *Job) admittedByPolicy() bool {
	p := j.Promise
	return j.State == schemas.StateSubmitted && p != nil && p.Admission != nil && p.Chosen != nil
}

// deadline returns the time of submission plus the SLO; zero without an SLO.
func (j *Job) deadline() time.Time {
	if j.Submitted == nil || j.Submitted.Request.SLO == 0 {
		return time.Time{}
	}
	return j.Submitted.At.Add(time.Duration(j.Submitted.Request.SLO))
}

// trainedAt returns when an ended job completed its last epoch, or when it ended if it did not
// complete all epochs.
func (j *Job) trainedAt() time.Time {
	if j.epochAt.IsZero() || j.EpochsDone < j.Setting.Epochs {
		return j.EndedAt
	}
	return j.epochAt
}

// isPending reports whether the job is queued, submitted or running.
func (j *Job) isPending() bool {
	switch j.State {
	case schemas.StateSubmitted, schemas.StateQueued, schemas.StateRunning:
		return true
	}
	return false
}

// isExpected reports whether a policy has just admitted the job, so that it is about to start.
func (j *Job) isExpected(now time.Time) bool {
	return j.admittedByPolicy() && now.Sub(j.Promise.At) < startTimeout
}

// hasDeadline reports whether the job was submitted with an SLO.
func (j *Job) hasDeadline() bool { return j.Submitted != nil && j.Submitted.Request.SLO > 0 }

// asAdvised reports whether the first run of the job began with the advised batch size, CPUs and
// epochs. A later move keeps the promise valid.
func (j *Job) asAdvised() bool {
	if j.Promise == nil || j.Run != 1 || j.Promise.Chosen == nil {
		return false
	}
	s, chosen := &j.Setting, j.Promise.Chosen
	return j.initialBatch == chosen.BatchSize && j.initialCPUs == chosen.CPUs &&
		s.Epochs == chosen.Epochs
}

// promisedCPUs returns the mean number of CPUs that the job was promised on each of its nodes.
func (j *Job) promisedCPUs() float64 {
	return float64(j.Promise.Chosen.CPUs) / float64(max(1, len(j.Promise.Nodes)))
}

// processesPerNode returns the mean number of processes of the job on each of its nodes.
func (j *Job) processesPerNode() float64 {
	return float64(j.Setting.CPUs) / float64(max(1, len(j.Setting.Nodes)))
}

// firstEventAt returns approximately when the first event of a running job was stored.
func (j *Job) firstEventAt() time.Time {
	if j.Submitted != nil {
		return j.Submitted.At
	}
	return j.StartedAt
}

// SubmissionOutcome compares the answer to a submission with the run of its job.
type SubmissionOutcome struct {
	JobID       string
	Submitted   *schemas.Submitted // the request and its answer
	Promise     *schemas.Advice    // the answer, or the admission of a queued job; nil if refused
	Ran         schemas.Setting
	AsAdvised   bool     // it ran with the advised batch size, CPUs and epochs
	Kept        bool     // it finished within its SLO
	Finished    bool     // it completed all epochs
	WaitSeconds float64  // from submission to start
	RunSeconds  float64  // from its start to the end of its last epoch; 0 if the start is unknown
	Accuracy    *float64 // of its last epoch; nil if it was not measured
}

// Outcome returns the outcome of the submission. ok is false if it shows nothing about a promise:
// the job has no SLO, was started more than once, or has neither finished nor failed.
func (j *Job) Outcome() (o SubmissionOutcome, ok bool) {
	ended := j.State == schemas.StateFinished || j.State == schemas.StateFailed
	if !ended || j.Submitted == nil || j.Run != 1 || j.MetSLO == nil {
		return o, false
	}
	o = SubmissionOutcome{
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
		o.WaitSeconds = max(0, j.StartedAt.Sub(j.Submitted.At).Seconds())
		o.RunSeconds = j.trainedAt().Sub(j.StartedAt).Seconds()
	}
	return o, true
}
