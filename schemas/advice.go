package schemas

import (
	"cmp"
	"fmt"
	"slices"
)

// Decision is the conclusion of an advice.
type Decision string

// The decisions.
const (
	MeetsSLO   Decision = "meets_slo"   // the chosen alternative is predicted to meet the SLO
	BestEffort Decision = "best_effort" // no alternative is: the fastest one is chosen
	Exploring  Decision = "exploring"   // too little is known about the model: run the choice to learn
	Weighted   Decision = "weighted"    // the request has no SLO: the weighted score decided
)

// Action is what the runner of a job should do.
type Action string

// The actions.
const (
	// ActionStart: run the job as chosen. It is in the answer to a request and in the advice of
	// an admitted job.
	ActionStart Action = "start"
	// ActionWait: do not start the job. It is queued, and starts with the event admitted.
	ActionWait Action = "wait"
	// ActionRefuse: do not start the job, it was refused.
	ActionRefuse Action = "refuse"
	ActionKeep   Action = "keep" // continue unchanged
	ActionBatch  Action = "change_batch_size"
	ActionCPUs   Action = "change_cpus" // of an elastic job; Advice.Move says why
	// ActionLoaders: change the number of data loaders; Advice.Move says why.
	ActionLoaders Action = "change_loaders"
)

// Alternative is one way to run a job. Unknown figures are absent.
type Alternative struct {
	// Samples per iteration.
	BatchSize uint32 `json:"batch_size" ch:"batch_size"`
	// CPUs of each worker.
	CPUs uint32 `json:"cpus" ch:"cpus"`
	// Number of workers; absent for a single one.
	Workers uint32 `json:"workers,omitempty" ch:"workers"`
	// Number of data loaders of each worker; absent for none.
	Loaders uint32 `json:"loaders,omitempty" ch:"loaders"`
	// Total epochs; for a running job, the remaining epochs.
	Epochs uint32 `json:"epochs" ch:"epochs"`
	// Epochs after which it is expected to stop by itself, as earlier jobs of the model did or because it
	// reaches its target accuracy; absent if after all of them.
	ExpectedEpochs uint32 `json:"expected_epochs,omitempty"`
	// Median of the predicted time: start-up and all epochs, or the remaining epochs of a running
	// job. It includes the slowdown by co-located jobs.
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty" ch:"predicted_seconds"`
	// Time that is not exceeded with the requested confidence; absent if no bound is known.
	UpperBoundSeconds *float64 `json:"upper_bound_seconds,omitempty" ch:"upper_bound_seconds"`
	// Predicted accuracy after the last epoch, by which alternatives are ranked, 0 to 1.
	PredictedAccuracy *float64 `json:"predicted_accuracy,omitempty" ch:"predicted_accuracy"`
	// Probability of meeting the SLO and, if there is one, the target accuracy, 0 to 1.
	Probability *float64 `json:"probability,omitempty" ch:"probability"`
	// Cost: CPUs of all workers times predicted time.
	CPUSeconds *float64 `json:"cpu_seconds,omitempty"`
	// Weighted score of a request without an SLO.
	Score *float64 `json:"score,omitempty"`
	// True if the prediction is outside the support: no promise.
	Extrapolated bool `json:"extrapolated,omitempty"`
	// Why the alternative was chosen or rejected.
	Reason string `json:"reason,omitempty"`

	// Lower end of the interval that contains the accuracy with the requested confidence; absent
	// if the accuracy may be lower than every measured one.
	AccuracyLower *float64 `json:"accuracy_lower,omitempty"`
	// Upper end of that interval.
	AccuracyUpper *float64 `json:"accuracy_upper,omitempty"`
	// Probability of meeting the SLO alone, for a request with a target accuracy, 0 to 1.
	SLOProbability *float64 `json:"slo_probability,omitempty"`
	// Probability of reaching the target accuracy alone, 0 to 1.
	AccuracyProbability *float64 `json:"accuracy_probability,omitempty"`
	// Measurements behind the figures; absent from the chosen alternative, which is also in the list.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Processes returns the CPUs of all workers.
func (a *Alternative) Processes() uint32 { return Processes(a.Workers, a.CPUs) }

// Load is the load on the nodes of a job, the job included.
type Load struct {
	// Number of jobs that run at the same time.
	ConcurrentJobs float64 `json:"concurrent_jobs" ch:"concurrent_jobs"`
	// Sum of the CPUs of these jobs.
	Processes float64 `json:"processes" ch:"processes"`
	// Processes divided by the logical processors of the node; 0 if that number is unknown.
	ProcessesPerCore float64 `json:"processes_per_core"`
	// Share of the node's processors used by work unknown to Courier, in steps of 0.1; absent if
	// unknown.
	ForeignCPURatio Ratio `json:"foreign_cpu_ratio,omitzero"`
	// Share of the node's processors that are idle while work unknown to Courier waits for
	// storage, in steps of 0.1; absent if unknown.
	ForeignIOWaitRatio Ratio `json:"foreign_io_wait_ratio,omitzero"`
}

// Effect is the predicted interference of a new job with a running one.
type Effect struct {
	JobID string `json:"job_id"`
	// Predicted remaining time without the new job.
	BeforeSeconds float64 `json:"before_seconds"`
	// Predicted remaining time with the new job.
	AfterSeconds float64 `json:"after_seconds"`
	// True if the probability of meeting the SLO falls below the confidence, or falls further
	// while the SLO can still be met.
	BreaksSLO bool `json:"breaks_slo"`

	// Probability of meeting the SLO without the new job; absent without an SLO or a prediction.
	BeforeProbability *float64 `json:"before_probability,omitempty"`
	// Probability of meeting the SLO with the new job.
	AfterProbability *float64 `json:"after_probability,omitempty"`
	// Confidence that the running job requested.
	Confidence float64 `json:"confidence,omitempty"`
}

// Advice answers a job request. For a running job it is the event job.<id>.advice.
type Advice struct {
	JobStamp
	// Sequence in the stream JOB of the event that caused the advice; in a reply, of the last
	// event that the advisor had read.
	CauseSequence uint64   `json:"cause_sequence,omitempty" ch:"cause_sequence"`
	Decision      Decision `json:"decision"`
	// What to do.
	Action Action `json:"action"`
	// The advice in one sentence.
	Message string `json:"message" ch:"message"`
	// Name of the model that is trained.
	Model string `json:"model" ch:"model"`
	// Name of the training data; absent if the request has none.
	Dataset string `json:"dataset,omitempty" ch:"dataset"`
	// Nodes on which the job runs.
	Nodes []string `json:"nodes" ch:"nodes"`
	// Requested SLO; absent if there is none.
	SLOSeconds float64 `json:"slo_seconds,omitempty" ch:"slo_seconds"`
	// Time since submission.
	ElapsedSeconds float64 `json:"elapsed_seconds,omitempty" ch:"elapsed_seconds"`
	// Requested confidence.
	Confidence float64 `json:"confidence" ch:"confidence"`
	// Epochs completed so far.
	EpochsDone uint32 `json:"epochs_done" ch:"epochs_done"`
	// True if the job may end by itself with fewer epochs than it has, because its request allows it
	// or its model usually does.
	MayStopEarly bool `json:"may_stop_early,omitempty"`
	// Measured divided by predicted time of the job's own epochs, shrunk towards 1; absent before
	// the first epoch.
	EpochRatio float64 `json:"epoch_ratio,omitempty"`
	// Load assumed for the prediction.
	Load Load `json:"load"`
	// What to run.
	Chosen *Alternative `json:"chosen"`
	// Every candidate, the chosen one included.
	Alternatives []Alternative `json:"alternatives"`
	// Interference with running jobs.
	Effects []Effect `json:"effects,omitempty"`
	// Other ways to run the job: those that avoid a broken or missed SLO; without an SLO, those
	// that no alternative dominates.
	Menu []Choice `json:"menu,omitempty"`
	// Result of the cluster's admission policy; absent: the job may start.
	Admission *Admission `json:"admission,omitempty"`
	// Why the CPUs or the loaders of the job should change; absent: they should not.
	Move *PlannedMove `json:"move,omitempty"`
	// Target to the sha256 of its regressor.
	Regressors map[string]string `json:"regressors" ch:"regressors"`
}

// Running returns the alternative with a batch size and CPUs, and the chosen number of workers, or nil:
// the prediction for a job as it runs, which may differ from the chosen alternative.
func (a *Advice) Running(batchSize, cpus uint32) *Alternative {
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		isOther := a.Chosen != nil && a.Chosen.Workers != alt.Workers
		if !isOther && alt.BatchSize == batchSize && alt.CPUs == cpus {
			return alt
		}
	}
	return nil
}

// IsChosen reports whether an alternative is the chosen one.
func (a *Advice) IsChosen(alt *Alternative) bool {
	c := a.Chosen
	return c != nil && c.BatchSize == alt.BatchSize && c.CPUs == alt.CPUs && c.Workers == alt.Workers &&
		c.Epochs == alt.Epochs
}

// OtherChoices returns the menu without the chosen alternative, which may be unbeaten itself.
func (a *Advice) OtherChoices() []Choice {
	return slices.DeleteFunc(slices.Clone(a.Menu), func(c Choice) bool {
		same := &Alternative{BatchSize: c.BatchSize, CPUs: c.CPUs, Workers: c.Workers, Epochs: c.Epochs}
		return c.Kind == ChoiceUnbeaten && a.IsChosen(same)
	})
}

// AdviceID returns the identity of an advice event. Several advisors that read the same cause
// publish advice with the same identity.
func AdviceID(job string, cause uint64) string { return fmt.Sprintf("%s/%d/advice", job, cause) }

// Subject implements Event.
func (a *Advice) Subject() string { return JobSubject(a.JobID, EventAdvice) }

// Validate implements Event.
func (a *Advice) Validate() error {
	if a.Chosen == nil {
		return Invalid("chosen", "missing")
	}
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if !finite(alt.PredictedSeconds) || !finite(alt.UpperBoundSeconds) {
			return Invalid("alternatives", "a time of alternative %d is not finite", i)
		}
	}
	return cmp.Or(
		a.JobStamp.validate(),
		OneOf("decision", a.Decision, MeetsSLO, BestEffort, Exploring, Weighted),
		validateLength("alternatives", len(a.Alternatives), MaxCandidates),
	)
}
