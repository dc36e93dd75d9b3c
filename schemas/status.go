package schemas

import "time"

// State of a job, as a fold over its events says it.
type State string

// The states.
const (
	StateSubmitted State = "submitted"
	StateQueued    State = "queued"  // held by the cluster's admission policy
	StateRefused   State = "refused" // by the cluster's admission policy
	StateRunning   State = "running"
	StateFinished  State = "finished"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
	StateLost      State = "lost"
)

// States lists every state in the order of a job's life.
func States() []State {
	return []State{StateSubmitted, StateQueued, StateRefused, StateRunning, StateFinished, StateFailed, StateCancelled, StateLost}
}

// JobStatusRequest asks for one job: job.status.
type JobStatusRequest struct {
	JobID string `json:"id"` // of the job
}

// Subject implements Request.
func (r *JobStatusRequest) Subject() string { return SubjectJobStatus }

// Validate implements Request.
func (r *JobStatusRequest) Validate() error { return validateToken("id", r.JobID) }

// JobCancelRequest asks to end a job: job.cancel. The reply is its JobStatus.
type JobCancelRequest struct {
	JobID  string `json:"id"`               // of the job
	Reason string `json:"reason,omitempty"` // why, for the record
}

// Subject implements Request.
func (r *JobCancelRequest) Subject() string { return SubjectJobCancel }

// Validate implements Request.
func (r *JobCancelRequest) Validate() error {
	if err := validateToken("id", r.JobID); err != nil {
		return err
	}
	return validateText("reason", r.Reason)
}

// Page sizes of job.list.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// JobListRequest asks for jobs, newest first: job.list.
type JobListRequest struct {
	State State  `json:"state,omitempty"` // only jobs in this state
	Limit int    `json:"limit,omitempty"` // jobs on a page, 1 to 1000; default 100
	After string `json:"after,omitempty"` // the next field of the page before
}

// Subject implements Request.
func (r *JobListRequest) Subject() string { return SubjectJobList }

// Validate implements Request.
func (r *JobListRequest) Validate() error {
	if r.Limit < 0 || r.Limit > MaxPage {
		return Invalid("limit", "%d is not between 1 and %d", r.Limit, MaxPage)
	}
	if r.After != "" {
		if err := validateToken("after", r.After); err != nil {
			return err
		}
	}
	if r.State == "" {
		return nil
	}
	for _, s := range States() {
		if s == r.State {
			return nil
		}
	}
	return Invalid("state", "%q is not one of %v", clip(string(r.State)), States())
}

// JobStatus is what is known of a job: the reply of job.status and job.cancel.
type JobStatus struct {
	JobID          string     `json:"job_id"`
	State          State      `json:"state"`
	Model          string     `json:"model"`
	Dataset        string     `json:"dataset,omitempty"` // absent: none was named
	User           string     `json:"user,omitempty"`
	Nodes          []string   `json:"nodes,omitempty"`
	BatchSize      uint32     `json:"batch_size,omitempty"`       // running with, or advised
	CPUs           uint32     `json:"cpus,omitempty"`             // running with, or advised
	Epochs         uint32     `json:"epochs,omitempty"`           // to run
	EpochsDone     uint32     `json:"epochs_done"`                // so far
	Run            uint32     `json:"run"`                        // starts so far
	SLOSeconds     float64    `json:"slo_seconds,omitempty"`      // absent: none
	SubmittedAt    *time.Time `json:"submitted_at,omitempty"`     // absent: started without a request
	StartedAt      *time.Time `json:"started_at,omitempty"`       // of the last run
	EndedAt        *time.Time `json:"ended_at,omitempty"`         // absent while it may go on
	DeadlineAt     *time.Time `json:"deadline_at,omitempty"`      // submission + SLO
	PredictedEndAt *time.Time `json:"predicted_end_at,omitempty"` // of a running job; absent if unknown
	Probability    *float64   `json:"probability,omitempty"`      // of meeting the SLO, as predicted now
	AtRisk         bool       `json:"at_risk,omitempty"`          // a warning stands: the probability fell under the confidence
	Accuracy       *float64   `json:"accuracy,omitempty"`         // of the last epoch
	Decision       Decision   `json:"decision,omitempty"`         // of the last advice
	MetSLO         *bool      `json:"met_slo,omitempty"`          // of a finished job with an SLO
	Reason         string     `json:"reason,omitempty"`           // why it ended
}

// JobList is a page of jobs, the reply of job.list.
type JobList struct {
	Jobs []JobStatus `json:"jobs"`
	Next string      `json:"next,omitempty"` // give it as after for the next page; absent on the last
}

// Told is the reply to an event that a person told of his job: where it is kept.
type Told struct {
	Sequence uint64 `json:"sequence"` // of the event in its stream; of a copy, that of the first
}
