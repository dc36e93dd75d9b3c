package schemas

import (
	"cmp"
	"fmt"
)

// Decision is the verdict of an advice.
type Decision string

// The decisions.
const (
	MeetsSLO   Decision = "meets_slo"   // the chosen alternative is predicted to meet the SLO
	BestEffort Decision = "best_effort" // none meets it: the fastest is chosen
	Exploring  Decision = "exploring"   // too little is known about this model: run the chosen one to learn
	Weighted   Decision = "weighted"    // no SLO was given: the weighted score decided
)

// Action is what a running job should do.
type Action string

// The actions.
const (
	ActionStart Action = "start" // run it as chosen: the answer to a request, or the advice of an admitted job
	ActionKeep  Action = "keep"  // go on unchanged
	ActionBatch Action = "change_batch_size"
	ActionCPUs  Action = "change_cpus"
)

// Alternative is one way to run a job. Figures that are not known are absent.
type Alternative struct {
	BatchSize         uint32   `json:"batch_size"`                    // samples in one iteration
	CPUs              uint32   `json:"cpus"`                          // processes
	Epochs            uint32   `json:"epochs"`                        // epochs, or those that remain of a running job
	PredictedSeconds  *float64 `json:"predicted_seconds,omitempty"`   // predicted time, its median: start-up and all epochs, or those that remain, beside the jobs that run meanwhile
	MeanSeconds       *float64 `json:"mean_seconds,omitempty"`        // its mean
	UpperBoundSeconds *float64 `json:"upper_bound_seconds,omitempty"` // kept with the requested confidence; absent if none is known
	PredictedAccuracy *float64 `json:"predicted_accuracy,omitempty"`  // after the last epoch, its median, 0 to 1
	Probability       *float64 `json:"probability,omitempty"`         // of meeting the SLO, and the target accuracy if there is one, 0 to 1
	CPUSeconds        *float64 `json:"cpu_seconds,omitempty"`         // what it costs: CPUs times predicted time
	Score             *float64 `json:"score,omitempty"`               // weighted score, where no SLO is given
	Extrapolated      bool     `json:"extrapolated,omitempty"`        // beyond what was ever measured: no guarantee
	Reason            string   `json:"reason,omitempty"`              // why it was chosen or lost

	// Expected accuracy, by which alternatives are ranked, 0 to 1.
	MeanAccuracy *float64 `json:"mean_accuracy,omitempty"`
	// Lower end of the interval that contains the accuracy with the requested confidence;
	// absent if it may be below all that was measured.
	AccuracyLower *float64 `json:"accuracy_lower,omitempty"`
	// Upper end of that interval.
	AccuracyUpper *float64 `json:"accuracy_upper,omitempty"`
	// Of meeting the SLO alone, where there is a target accuracy, 0 to 1.
	SLOProbability *float64 `json:"slo_probability,omitempty"`
	// Of reaching the target accuracy alone, 0 to 1.
	AccuracyProbability *float64 `json:"accuracy_probability,omitempty"`
	// What the figures rest on.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Load is what surrounds a job on its nodes, itself included.
type Load struct {
	ConcurrentJobs   float64 `json:"concurrent_jobs"`    // jobs at once
	Processes        float64 `json:"processes"`          // sum of their CPUs
	ProcessesPerCore float64 `json:"processes_per_core"` // processes / logical processors of the node; 0 if its size is unknown
	StableTimeRatio  float64 `json:"stable_time_ratio"`  // longest stretch without a change of concurrency / whole time, 0 to 1

	// ForeignCPURatio is the share of the node's processors that work unknown to Courier takes, in
	// steps of 0.1; absent if unknown.
	ForeignCPURatio Ratio `json:"foreign_cpu_ratio,omitzero"`
	// ForeignIOWaitRatio is the share of the node's processors that idle while work unknown to
	// Courier waits for storage, in steps of 0.1; absent if unknown.
	ForeignIOWaitRatio Ratio `json:"foreign_io_wait_ratio,omitzero"`
}

// Effect is what a job does to another that is running already.
type Effect struct {
	JobID         string  `json:"job_id"`
	BeforeSeconds float64 `json:"before_seconds"` // predicted remaining time without the new job
	AfterSeconds  float64 `json:"after_seconds"`  // with it
	BreaksSLO     bool    `json:"breaks_slo"`     // its probability falls under its confidence, or further under while it can still be kept

	BeforeProbability *float64 `json:"before_probability,omitempty"` // of meeting its SLO without the new job; absent if it has none or nothing is known
	AfterProbability  *float64 `json:"after_probability,omitempty"`  // with it
	Confidence        float64  `json:"confidence,omitempty"`         // that it asked for
}

// Advice answers a job request, and is job.<id>.advice for a job that runs.
type Advice struct {
	JobStamp
	CauseSequence  uint64            `json:"cause_sequence,omitempty"` // sequence in JOB of the event that caused it; in a reply, of the last one that was known
	Decision       Decision          `json:"decision"`
	Action         Action            `json:"action"`                    // what to do
	Message        string            `json:"message"`                   // the advice in a sentence
	Model          string            `json:"model"`                     // name of what is trained
	Dataset        string            `json:"dataset,omitempty"`         // name of its training data; absent: none was named
	Nodes          []string          `json:"nodes"`                     // where it runs
	SLOSeconds     float64           `json:"slo_seconds,omitempty"`     // absent: none was given
	ElapsedSeconds float64           `json:"elapsed_seconds,omitempty"` // since submission
	Confidence     float64           `json:"confidence"`                // asked for
	Threshold      float64           `json:"threshold,omitempty"`       // least probability that was promised, where the confidence is the mean of all promises; absent: the confidence
	EpochsDone     uint32            `json:"epochs_done"`               // so far
	EpochRatio     float64           `json:"epoch_ratio,omitempty"`     // how much longer its own epochs take than predicted, shrunk towards 1; absent before the first
	Load           Load              `json:"load"`                      // assumed for the prediction
	Chosen         *Alternative      `json:"chosen"`                    // what to run
	Alternatives   []Alternative     `json:"alternatives"`              // every candidate, the chosen one included
	Effects        []Effect          `json:"effects,omitempty"`         // on the running jobs
	Menu           []Choice          `json:"menu,omitempty"`            // other ways to run it: out of what it breaks or misses, or un-beaten where no SLO was given
	Probes         []ProbeEpoch      `json:"probes,omitempty"`          // epochs that teach most about a model of which nothing is known, in order
	Relatives      []string          `json:"relatives,omitempty"`       // not set any more: figures of other models are no prediction
	Admission      *Admission        `json:"admission,omitempty"`       // what the cluster's policy says; absent: it may start
	Regressors     map[string]string `json:"regressors"`                // target to the sha256 of its regressor
}

// Least is the least probability that was promised.
func (a *Advice) Least() float64 { return cmp.Or(a.Threshold, a.Confidence) }

// Running returns the alternative of a batch size and CPUs, nil if it is none:
// what is predicted of a job as it runs, whatever was chosen.
func (a *Advice) Running(batchSize, cpus uint32) *Alternative {
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; alt.BatchSize == batchSize && alt.CPUs == cpus {
			return alt
		}
	}
	return nil
}

// AdviceID returns the identity of an advice event: several advisors that see
// the same cause make the same one.
func AdviceID(job string, cause uint64) string { return fmt.Sprintf("%s/%d/advice", job, cause) }

// Subject implements Event.
func (a *Advice) Subject() string { return JobSubject(a.JobID, EventAdvice) }

// Validate implements Event.
func (a *Advice) Validate() error {
	if err := a.JobStamp.validate(); err != nil {
		return err
	}
	switch a.Decision {
	case MeetsSLO, BestEffort, Exploring, Weighted:
	default:
		return Invalid("decision", "%q is not meets_slo, best_effort, exploring or weighted", clip(string(a.Decision)))
	}
	if a.Chosen == nil {
		return Invalid("chosen", "is missing")
	}
	if len(a.Alternatives) > MaxCandidates {
		return Invalid("alternatives", "%d are more than %d", len(a.Alternatives), MaxCandidates)
	}
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; !finite(alt.PredictedSeconds) || !finite(alt.UpperBoundSeconds) {
			return Invalid("alternatives", "a time of number %d is not finite", i)
		}
	}
	return nil
}
