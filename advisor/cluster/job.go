package cluster

import (
	"slices"
	"time"

	"courier/schemas"
)

// Job is the state of one job, as the event log describes it. Its JSON is the encoding of snapshots.
// Slices and pointers are never changed in place, because questions and snapshots share them.
type Job struct {
	ID       string        `json:"id,omitempty"`
	State    schemas.State `json:"state,omitempty"`
	First    uint64        `json:"first,omitempty"`     // sequence of its first event
	ListedAt uint64        `json:"listed_at,omitempty"` // its time, in Unix milliseconds: the order of job.list
	EndOrder uint64        `json:"end_order,omitempty"` // position among the jobs that may be dropped; 0 if it may not
	User     string        `json:"user,omitempty"`

	// Request is nil if the job was started without one.
	Request     *schemas.JobRequest `json:"request,omitempty"`
	SubmittedAt time.Time           `json:"submitted_at,omitzero"`
	Promise     *AdviceSummary      `json:"promise,omitempty"` // its answer or admission; nil if none
	Advice      *AdviceSummary      `json:"advice,omitempty"`  // the last one

	Answer    *schemas.Advice `json:"answer,omitempty"`    // to its request, until the job ends
	Admission *schemas.Advice `json:"admission,omitempty"` // of a queued job, until it starts

	Setting      schemas.Setting    `json:"setting,omitzero"` // of the last run
	Run          uint32             `json:"run,omitempty"`
	Hardware     []schemas.Hardware `json:"hardware,omitempty"` // of Setting.Nodes, in the same order
	StartedAt    time.Time          `json:"started_at,omitzero"`
	EndedAt      time.Time          `json:"ended_at,omitzero"`
	EpochsDone   uint32             `json:"epochs_done,omitempty"`
	LastEpochAt  time.Time          `json:"last_epoch_at,omitzero"`  // end of its last epoch
	LongestEpoch time.Duration      `json:"longest_epoch,omitempty"` // of this run
	Accuracy     *float64           `json:"accuracy,omitempty"`
	BestAccuracy *float64           `json:"best_accuracy,omitempty"` // of this run
	Phases       schemas.Phases     `json:"phases,omitzero"`         // of this run
	Reason       string             `json:"reason,omitempty"`
	MetSLO       *bool              `json:"met_slo,omitempty"`
	MayStopEarly bool               `json:"may_stop_early,omitempty"` // fewer epochs suffice
	Risk         *schemas.Risk      `json:"risk,omitempty"`           // the last warning or all-clear
	Divergence   *schemas.Risk      `json:"divergence,omitempty"`     // the same about its loss

	InitialBatch uint32       `json:"initial_batch,omitempty"` // at the start of the last run
	InitialCPUs  uint32       `json:"initial_cpus,omitempty"`  // at the start of the last run
	HasMoved     bool         `json:"has_moved,omitempty"`     // the run changed its batch size or CPUs
	MovedAfter   uint32       `json:"moved_after,omitempty"`   // epochs; the last change of its CPUs
	IsElastic    bool         `json:"is_elastic,omitempty"`    // the runner can change the CPUs
	BarredMoves  []BarredMove `json:"barred_moves,omitempty"`  // of this run, by end
	MovesLoaders bool         `json:"moves_loaders,omitempty"` // the runner can change the data loaders

	ObservedEpochs  []ObservedEpoch `json:"observed_epochs,omitempty"` // of this run, in order
	Together        uint32          `json:"together,omitempty"`        // number of epochs in its last report
	EpochsFollow    bool            `json:"epochs_follow,omitempty"`   // more events of that report follow
	LoadAtLastEpoch []LoadIntegral  `json:"load_at_last_epoch,omitempty"`
	ProgressAt      time.Time       `json:"progress_at,omitzero"` // end of its last epoch, by the server's clock
	Usage           schemas.Usage   `json:"usage,omitzero"`       // in its last epoch
	IOWait          float64         `json:"io_wait,omitempty"`    // of its node in its last epoch; 0 if unknown
	Losses          LossHistory     `json:"losses,omitzero"`      // of this run

	// Uses are of the last epochs with the current batch size and CPUs. FormerUses are means of this
	// run with other CPUs, the latest last.
	Uses       []EpochUse `json:"uses,omitempty"`
	FormerUses []EpochUse `json:"former_uses,omitempty"`

	ClockLag     time.Duration `json:"clock_lag,omitempty"`     // minimum lag of the runner behind the submitter
	HasHeartbeat bool          `json:"has_heartbeat,omitempty"` // its runner sends heartbeats
	// HasLastHeartbeat: a heartbeat has reported the end of the run, and the event of the end is not
	// applied yet.
	HasLastHeartbeat bool          `json:"has_last_heartbeat,omitempty"`
	Within           EpochProgress `json:"-"`                  // of its running epoch, by heartbeats
	LastSeen         time.Time     `json:"last_seen,omitzero"` // last event or heartbeat, by this clock or the server's

	Last uint64 `json:"last,omitempty"` // sequence of its last event, without advice
}

// AdviceSummary is the part of an advice that the state keeps, to compare it with the next one and with
// the run of the job. The whole advice is in the event log.
type AdviceSummary struct {
	At            time.Time        `json:"at,omitzero"`
	Run           uint32           `json:"run,omitempty"`
	CauseSequence uint64           `json:"cause_sequence,omitempty"`
	Decision      schemas.Decision `json:"decision,omitempty"`
	Action        schemas.Action   `json:"action,omitempty"`
	IsAdmitted    bool             `json:"is_admitted,omitempty"` // by an admission policy
	Load          schemas.Load     `json:"load,omitzero"`
	Nodes         []string         `json:"nodes,omitempty"`

	// The chosen alternative.
	BatchSize        uint32   `json:"batch_size,omitempty"`
	CPUs             uint32   `json:"cpus,omitempty"`
	Workers          uint32   `json:"workers,omitempty"` // 0: a single one
	Epochs           uint32   `json:"epochs,omitempty"`
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty"`
	Probability      *float64 `json:"probability,omitempty"`

	// Proposal is the message of an advice to change the CPUs or the data loaders.
	Proposal string `json:"proposal,omitempty"`
}

// Summarize returns the summary of an advice. It does not retain the advice.
func Summarize(a *schemas.Advice) *AdviceSummary {
	s := &AdviceSummary{
		At:            a.At,
		Run:           a.Run,
		CauseSequence: a.CauseSequence,
		Decision:      a.Decision,
		Action:        a.Action,
		IsAdmitted:    a.Admission != nil && a.Admission.Verdict == schemas.Admitted,
		Load:          a.Load,
		Nodes:         a.Nodes,
	}
	if c := a.Chosen; c != nil {
		s.BatchSize, s.CPUs, s.Workers, s.Epochs = c.BatchSize, c.CPUs, c.Workers, c.Epochs
		s.PredictedSeconds, s.Probability = c.PredictedSeconds, c.Probability
	}
	if a.Action != schemas.ActionStart && a.Action != schemas.ActionKeep {
		s.Proposal = a.Message
	}
	return s
}

// maxObservedEpochs bounds the spans of epochs of a run. Above it neighbours are merged.
const maxObservedEpochs = 64

// ObservedEpoch is the duration of an epoch and the time-weighted mean load during it, or of several
// epochs in a row.
type ObservedEpoch struct {
	Count     uint32     `json:"count"` // epochs
	BatchSize uint32     `json:"batch_size"`
	CPUs      uint32     `json:"cpus"`    // of all workers
	Seconds   float64    `json:"seconds"` // of all of them; 0 if they say nothing about the job
	Load      LoadOnNode `json:"load"`
	Node      string     `json:"node"` // with the load
}

// IsOver reports whether the run has ended. A lost run has not: it may come back.
func (j *Job) IsOver() bool {
	return j.State == schemas.StateFinished || j.State == schemas.StateFailed ||
		j.State == schemas.StateCancelled
}

// IsSettled reports whether the job has ended or was refused. Only another run changes it, and Apply then
// changes a copy, because snapshots and scores share settled jobs.
func (j *Job) IsSettled() bool { return j.IsOver() || j.State == schemas.StateRefused }

// IsIncomplete reports whether the job finished with fewer epochs than it should have, or without
// recognized epochs. It meets no SLO then. A job that finished after its deadline is not incomplete,
// because it missed the SLO in any case.
func (j *Job) IsIncomplete() bool {
	if j.State != schemas.StateFinished || j.EpochsDone >= j.Setting.Epochs ||
		j.MayStopEarly && j.endedByItself() {
		return false
	}
	return !j.HasDeadline() || !j.EndedAt.After(j.Deadline())
}

// endedByItself reports whether the job finished after some of its epochs, and nobody stopped it.
func (j *Job) endedByItself() bool {
	return j.State == schemas.StateFinished && j.EpochsDone > 0 && j.Reason == ""
}

// IsAtRisk reports whether a warning about the current run is active.
func (j *Job) IsAtRisk() bool { return j.isActive(j.Risk) }

// IsWarnedOfDivergence reports whether a warning of a rising loss is active.
func (j *Job) IsWarnedOfDivergence() bool { return j.isActive(j.Divergence) }

func (j *Job) isActive(r *schemas.Risk) bool { return r != nil && r.Run == j.Run && !r.Cleared }

// IsAdmitted reports whether a policy has admitted the job and it has not started.
func (j *Job) IsAdmitted() bool {
	return j.State == schemas.StateSubmitted && j.Promise != nil && j.Promise.IsAdmitted
}

// Deadline returns the time of submission plus the SLO; zero without an SLO.
func (j *Job) Deadline() time.Time {
	if !j.HasDeadline() {
		return time.Time{}
	}
	return j.SubmittedAt.Add(time.Duration(j.Request.SLO))
}

// TrainedAt returns when a job completed its last epoch, or when it ended if it did not complete all epochs;
// zero if it did neither.
func (j *Job) TrainedAt() time.Time {
	if j.LastEpochAt.IsZero() || j.EpochsDone < j.Setting.Epochs {
		return j.EndedAt
	}
	return j.LastEpochAt
}

// Owner returns the user who submitted the job, or who started it without a submission; "" for none.
func (j *Job) Owner() string {
	if j.Request != nil {
		return j.Request.User
	}
	return j.User
}

// IsPending reports whether the job is queued, submitted or running. Another one may never change again,
// but a lost job may come back, a refused job may be started nevertheless, and any job may run again.
func (j *Job) IsPending() bool {
	switch j.State {
	case schemas.StateSubmitted, schemas.StateQueued, schemas.StateRunning:
		return true
	}
	return false
}

// IsExpected reports whether a policy has just admitted the job, so that it is about to start.
func (j *Job) IsExpected(now time.Time) bool { return j.IsAdmitted() && j.ReservedFor(now) > 0 }

// ReservedFor returns for how much longer CPUs are reserved for an admitted job; 0 if they no longer are.
func (j *Job) ReservedFor(now time.Time) time.Duration {
	return max(0, schemas.Reservation-now.Sub(j.Promise.At))
}

// HasDeadline reports whether the job was submitted with an SLO.
func (j *Job) HasDeadline() bool { return j.Request != nil && j.Request.SLO > 0 }

// asAdvised reports whether the first run of the job began with the advised batch size, workers, CPUs and
// epochs. A later move keeps the promise valid.
func (j *Job) asAdvised() bool {
	p := j.Promise
	isBatchSize := p != nil && (p.BatchSize == 0 || j.InitialBatch == p.BatchSize)
	return isBatchSize && j.Run == 1 && j.InitialCPUs == p.CPUs &&
		schemas.IsSameWorkers(j.Setting.Workers, p.Workers) && j.Setting.Epochs == p.Epochs
}

// promisedCPUs returns the mean number of CPUs that the job was promised on each of its nodes.
func (j *Job) promisedCPUs() float64 {
	return float64(schemas.Processes(j.Promise.Workers, j.Promise.CPUs)) / float64(max(1, len(j.Promise.Nodes)))
}

// ProcessesPerNode returns the mean number of processes of the job on each of its nodes.
func (j *Job) ProcessesPerNode() float64 {
	return float64(j.Setting.Processes()) / float64(max(1, len(j.Setting.Nodes)))
}

// Outcome reports whether a job that finished or failed kept its SLO and reached its target accuracy, if it has
// one. ok is false if that shows nothing about its promise: the job has no SLO, was started more than once, or did
// not run as advised.
func (j *Job) Outcome() (kept, ok bool) {
	ended := j.State == schemas.StateFinished || j.State == schemas.StateFailed
	if !ended || j.MetSLO == nil || !j.asAdvised() {
		return false, false
	}
	return *j.MetSLO && (j.Request.TargetAccuracy == 0 || j.reaches(j.Accuracy)), true
}

// reaches reports whether an accuracy is the target of the job; false without a target.
func (j *Job) reaches(accuracy *float64) bool {
	q := j.Request
	return q != nil && q.TargetAccuracy > 0 && accuracy != nil && *accuracy >= q.TargetAccuracy
}

// Took returns the time of a job that finished as advised, from its start to its last epoch, and the
// prediction of its promise. predicted is nil if there is no such time.
func (j *Job) Took() (measured time.Duration, predicted *float64) {
	if j.State != schemas.StateFinished || j.HasMoved || j.EpochsDone < j.Setting.Epochs || !j.asAdvised() {
		return 0, nil
	}
	return j.LastEpochAt.Sub(j.StartedAt), j.Promise.PredictedSeconds
}

// BarredMove is a number of CPUs that must not be planned for a job.
type BarredMove struct {
	CPUs  uint32    `json:"cpus"`
	Until time.Time `json:"until"`
}

// IsElasticNow reports whether the CPUs of the running job can change. A job keeps its workers while it
// runs, and with several workers also their CPUs.
func (j *Job) IsElasticNow() bool {
	return j.State == schemas.StateRunning && j.IsElastic && len(j.Setting.Nodes) == 1 &&
		j.Request != nil && len(j.Request.CPUs) > 1 && j.Setting.Workers <= 1
}

// AllowedCPUs returns the numbers of CPUs that a running elastic job may hold, ascending: those of
// its request without the barred ones. The current number is always allowed.
func (j *Job) AllowedCPUs(now time.Time) []int {
	return slices.DeleteFunc(slices.Sorted(slices.Values(j.Request.CPUs)), func(n int) bool {
		return uint32(n) != j.Setting.CPUs && slices.ContainsFunc(j.BarredMoves, func(m BarredMove) bool {
			return m.CPUs == uint32(n) && m.Until.After(now)
		})
	})
}

// oldestHeartbeat is how late a heartbeat may arrive. The clock of an older one is slow.
const oldestHeartbeat = longAgo / 2

// EpochProgress is the progress within the epoch of a run, as a heartbeat had it at an instant.
type EpochProgress struct {
	schemas.EpochProgress
	Run uint32
	At  time.Time // by this clock
}

// ProgressWithin returns the progress within the running epoch at an instant; the zero value if it is
// unknown.
func (j *Job) ProgressWithin(now time.Time) (p schemas.EpochProgress) {
	w := &j.Within
	if j.State != schemas.StateRunning || w.Run != j.Run || w.EpochSeconds <= 0 || w.RunningEpoch != j.EpochsDone+1 {
		return p
	}
	p = w.EpochProgress
	p.EpochRatio = min(1, p.EpochRatio+max(0, now.Sub(w.At).Seconds())/p.EpochSeconds)
	return p
}

// HeardAt corrects the clock of a runner whose heartbeat of the given time has just arrived. Without that,
// the events of a clock that is an hour slow look like those of a past run.
func (j *Job) HeardAt(at, now time.Time) {
	if lag := now.Sub(at); lag > oldestHeartbeat {
		j.ClockLag = lag
	}
}

// correctedTime corrects the clock of the runner where it is certainly wrong: a run does not start
// before its submission, and an event is not stored before it happened. An event from a spool,
// which is stored late, keeps its own time.
func (j *Job) correctedTime(at, storedAt time.Time) time.Time {
	if at = at.Add(j.ClockLag); storedAt.Before(at) {
		return storedAt
	}
	return at
}
