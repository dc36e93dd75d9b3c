package schemas

import (
	"cmp"
	"strings"
	"time"
)

// State is the state of a job according to its events.
type State string

// The states.
const (
	StateSubmitted State = "submitted"
	StateQueued    State = "queued"  // held by the cluster's admission policy
	StateRefused   State = "refused" // refused by the cluster's admission policy
	StateRunning   State = "running"
	StateFinished  State = "finished"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
	StateLost      State = "lost"
)

// StateSelection selects jobs: one or more of the states, SelectOpen and SelectEnded, separated by
// commas, or "" for all.
type StateSelection string

// Selections of several states.
const (
	SelectOpen  StateSelection = "open"  // submitted, queued or running
	SelectEnded StateSelection = "ended" // all others
)

// Includes reports whether a selection includes a state.
func (sel StateSelection) Includes(s State) bool {
	group := SelectEnded
	if s == StateSubmitted || s == StateQueued || s == StateRunning {
		group = SelectOpen
	}
	for one := range strings.SplitSeq(string(sel), ",") {
		if one == "" || one == string(s) || one == string(group) {
			return true
		}
	}
	return false
}

// validate refuses a selection with an unknown name.
func (sel StateSelection) validate() error {
	known := []string{"", string(SelectOpen), string(SelectEnded)}
	for _, s := range States() {
		known = append(known, string(s))
	}
	for one := range strings.SplitSeq(string(sel), ",") {
		if err := OneOf("state", one, known...); err != nil {
			return err
		}
	}
	return nil
}

// States lists every state in the order in which a job passes through them.
func States() []State {
	return []State{
		StateSubmitted, StateQueued, StateRefused, StateRunning,
		StateFinished, StateFailed, StateCancelled, StateLost,
	}
}

// JobStatusRequest is job.status: report one job.
type JobStatusRequest struct {
	JobID string `json:"id"` // job ID
}

// Subject implements Request.
func (r *JobStatusRequest) Subject() string { return SubjectJobStatus }

// Validate implements Request.
func (r *JobStatusRequest) Validate() error { return validateToken("id", r.JobID) }

// JobCancelRequest is job.cancel: end a job. The reply is its JobStatus.
type JobCancelRequest struct {
	JobID  string `json:"id"`               // job ID
	Reason string `json:"reason,omitempty"` // reason for the record
}

// Subject implements Request.
func (r *JobCancelRequest) Subject() string { return SubjectJobCancel }

// Validate implements Request.
func (r *JobCancelRequest) Validate() error {
	return cmp.Or(validateToken("id", r.JobID), validateText("reason", r.Reason))
}

// Page sizes of job.list.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// MaxSearchBytes is the maximum length of a text that selects jobs.
const MaxSearchBytes = 256

// JobListRequest is job.list: list jobs, newest first.
type JobListRequest struct {
	// Only jobs in one of these states, separated by commas; "open" stands for submitted, queued and
	// running, "ended" for all others.
	State StateSelection `json:"state,omitempty"`
	// Only jobs whose ID, model, dataset, user or a node contains this text, in any case.
	Search  string `json:"search,omitempty"`
	User    string `json:"user,omitempty"`    // only jobs of this user
	Model   string `json:"model,omitempty"`   // only jobs of this model
	Dataset string `json:"dataset,omitempty"` // only jobs of this dataset
	Node    string `json:"node,omitempty"`    // only jobs of this node
	Label   string `json:"label,omitempty"`   // only jobs with this label, "name" or "name=value"
	// Only jobs that have not ended before this instant.
	Since time.Time `json:"since,omitzero"`
	// Only jobs that were submitted, or started without a request, before this instant.
	Until time.Time `json:"until,omitzero"`
	// Only jobs with an active warning.
	AtRisk bool `json:"at_risk,omitempty"`
	// Only jobs that missed their SLO.
	Missed bool `json:"missed,omitempty"`
	// Leave out the present predictions of running jobs, which take most of the time of a long list. A list by
	// probability has them.
	Brief bool `json:"brief,omitempty"`
	// Order: "probability", "deadline", "started", "ended", "id", "model", "user", "node" or "state",
	// ascending, or descending after a "-"; jobs without the figure come last. Default: newest first.
	// A sorted list has at most the 5000 newest of the selected jobs.
	Sort string `json:"sort,omitempty"`
	// Jobs per page, 1 to 1000; default 100. A page of a selection other than by state may have fewer,
	// also none, and a next one.
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"` // the field next of the previous page
}

// Subject implements Request.
func (r *JobListRequest) Subject() string { return SubjectJobList }

// Validate implements Request.
func (r *JobListRequest) Validate() error {
	return cmp.Or(
		validateRange("limit", r.Limit, 0, MaxPage),
		validateLength("search", len(r.Search), MaxSearchBytes),
		validateLength("user", len(r.User), MaxSearchBytes),
		validateLength("model", len(r.Model), MaxSearchBytes),
		validateLength("node", len(r.Node), MaxSearchBytes),
		validateLength("label", len(r.Label), 2*MaxSearchBytes),
		validateOptionalToken("after", r.After),
		r.State.validate(),
		OneOf("sort", strings.TrimPrefix(r.Sort, "-"), append(JobOrders(), "")...),
	)
}

// JobOrders lists the fields by which job.list sorts.
func JobOrders() []string {
	return []string{
		"probability", "deadline", "started", "ended", "id", "model", "user", "node", "state",
	}
}

// Bottleneck is what limits a running job.
type Bottleneck string

// Bottlenecks, by the CPU use and the waits of the last three epochs (resource policies, section 3.2).
const (
	BottleneckMemory  Bottleneck = "memory"  // the job waits for memory
	BottleneckInput   Bottleneck = "input"   // the job waits for its storage, or for batches
	BottleneckCPU     Bottleneck = "cpu"     // the job uses all of its CPUs, or waits for its only one
	BottleneckThreads Bottleneck = "threads" // the job has more threads than available CPUs
	BottleneckSurplus Bottleneck = "surplus" // the job would lose at most 2 % of its speed with one CPU less
)

// JobStatus describes a job. It is the reply to job.status and job.cancel.
type JobStatus struct {
	JobID string `json:"job_id"`
	State State  `json:"state"`
	Model string `json:"model"`
	// Absent if the request has none.
	Dataset string            `json:"dataset,omitempty"`
	User    string            `json:"user,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Nodes   []string          `json:"nodes,omitempty"`
	// Place in the queue, from 1; absent for a job that is not queued.
	QueuePosition uint32 `json:"queue_position,omitempty"`
	// For how long the CPUs of an admitted job are still reserved. Absent when it has started, and when it
	// must not start any more, because they may have been given to another job.
	ReservedSeconds float64 `json:"reserved_seconds,omitempty"`
	// Current batch size; before the start, the advised one.
	BatchSize uint32 `json:"batch_size,omitempty"`
	// Current CPUs of each worker; before the start, the advised ones.
	CPUs uint32 `json:"cpus,omitempty"`
	// Number of workers; absent for a single one.
	Workers uint32 `json:"workers,omitempty"`
	// Data loaders of each worker in the last epoch; absent for none.
	Loaders uint32 `json:"loaders,omitempty"`
	// Total epochs.
	Epochs uint32 `json:"epochs,omitempty"`
	// Epochs completed so far.
	EpochsDone uint32 `json:"epochs_done"`
	// Progress within the running epoch.
	EpochProgress
	// Number of starts so far.
	Run uint32 `json:"run"`
	// Absent if the request has none.
	SLOSeconds float64 `json:"slo_seconds,omitempty"`
	// Accuracy that the request wants to reach, 0 to 1; absent without one.
	TargetAccuracy float64 `json:"target_accuracy,omitempty"`
	// Absent if the job was started without a request.
	SubmittedAt *time.Time `json:"submitted_at,omitempty"`
	// Start of the last run.
	StartedAt *time.Time `json:"started_at,omitempty"`
	// Last event or heartbeat of a running job.
	LastSeenAt *time.Time `json:"last_seen_at,omitempty"`
	// Absent while the job may continue.
	EndedAt *time.Time `json:"ended_at,omitempty"`
	// End of the last epoch, which the SLO counts, or of a job with fewer epochs; absent before.
	TrainedAt *time.Time `json:"trained_at,omitempty"`
	// Submission time plus SLO.
	DeadlineAt *time.Time `json:"deadline_at,omitempty"`
	// Predicted end of a running job; absent if unknown.
	PredictedEndAt *time.Time `json:"predicted_end_at,omitempty"`
	// Probability of meeting the SLO and, if there is one, the target accuracy: the current one of a running
	// job, the advised one of a waiting job.
	Probability *float64 `json:"probability,omitempty"`
	// True while a warning is active: the probability fell below the confidence.
	AtRisk bool `json:"at_risk,omitempty"`
	// What limits a running job on one node, by its last three epochs: "memory", "input", "cpu",
	// "threads" (more threads than available CPUs) or "surplus" (it would be as fast with one CPU less).
	// Absent if the epochs do not show it.
	Bottleneck Bottleneck `json:"bottleneck,omitempty"`
	// Time of a run from its start to its last epoch, as predicted in the answer to its request, and as
	// measured; absent unless it finished all epochs with the advised configuration.
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty"`
	MeasuredSeconds  float64  `json:"measured_seconds,omitempty"`
	// Accuracy of the last epoch.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Sum of the phases of the run's epochs, as measured inside the training.
	Phases Phases `json:"phases,omitzero"`
	// Decision of the last advice. If there is a proposal, it is about the job after that change.
	Decision Decision `json:"decision,omitempty"`
	// Change that is advised for a running job, in one sentence; absent: continue unchanged.
	Proposal string `json:"proposal,omitempty"`
	// Probability of meeting the SLO after the proposed change.
	SavedProbability *float64 `json:"saved_probability,omitempty"`
	// Cost of the proposed change: accuracy lost compared with continuing unchanged; negative for a
	// gain.
	AccuracyLoss *float64 `json:"accuracy_loss,omitempty"`
	// Cost of the proposed change: CPU time in addition; negative if it saves some.
	ExtraCPUSeconds *float64 `json:"extra_cpu_seconds,omitempty"`
	// Whether a job that ended by itself met its SLO; absent for a cancelled, lost or incomplete
	// job.
	MetSLO *bool `json:"met_slo,omitempty"`
	// True for a job that finished before its deadline with fewer epochs than it should have, or
	// without recognized epochs.
	Incomplete bool `json:"incomplete,omitempty"`
	// Why the job ended.
	Reason string `json:"reason,omitempty"`
	// Why its last run is not learned from, wholly or in part; absent if nothing is known.
	NotLearned string `json:"not_learned,omitempty"`
}

// JobList is a page of jobs, the reply to job.list.
type JobList struct {
	Jobs []JobStatus `json:"jobs"`
	// Value of the field after for the next page; absent on the last page.
	Next string `json:"next,omitempty"`
	// Number of jobs in each state that the advisor knows, regardless of selection and page.
	Totals map[State]int `json:"totals,omitempty"`
	// Number of jobs with an active warning, regardless of selection and page.
	AtRisk int `json:"at_risk,omitempty"`
	// CPUs of each node that jobs hold which do not run: those about to start, and cancelled ones whose
	// command may still compute. Regardless of selection and page.
	HeldCPUs map[string]float64 `json:"held_cpus,omitempty"`
}

// Receipt is the reply to an event that a user published for a job of their own.
type Receipt struct {
	// Sequence of the event in its stream; for a duplicate, that of the first copy.
	Sequence uint64 `json:"sequence"`
}
