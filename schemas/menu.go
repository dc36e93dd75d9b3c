package schemas

import (
	"fmt"
)

// Kinds of a choice.
const (
	// ChoiceUnbeaten: no other alternative is faster, more accurate and cheaper. The user may
	// choose it if the request has no SLO.
	ChoiceUnbeaten = "unbeaten"
	ChoiceBatch    = "batch_size"     // another batch size
	ChoiceCPUs     = "cpus"           // fewer CPUs
	ChoiceEpochs   = "epochs"         // fewer epochs
	ChoiceStart    = "later_start"    // a later start, after other jobs have ended
	ChoiceDeadline = "later_deadline" // a longer SLO and, if necessary, a later start
)

// Choice is an entry of an advice's menu: another way to run the job. A choice of a kind other than
// ChoiceUnbeaten meets the SLOs of the job and of every running job with the requested confidence.
type Choice struct {
	// Difference from the chosen alternative.
	Kind string `json:"kind"`
	// Samples per iteration.
	BatchSize uint32 `json:"batch_size"`
	// CPUs of each worker.
	CPUs uint32 `json:"cpus"`
	// Number of workers; absent for a single one.
	Workers uint32 `json:"workers,omitempty"`
	// Total epochs.
	Epochs uint32 `json:"epochs"`
	// Time to wait before the start; absent: start now.
	StartSeconds float64 `json:"start_seconds,omitempty"`
	// SLO to request; absent: that of the request.
	SLOSeconds       float64  `json:"slo_seconds,omitempty"`
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty"`
	// Time that is not exceeded with the requested confidence.
	UpperBoundSeconds *float64 `json:"upper_bound_seconds,omitempty"`
	// Predicted accuracy after the last epoch, 0 to 1.
	PredictedAccuracy *float64 `json:"predicted_accuracy,omitempty"`
	// Probability of meeting the SLO and, if there is one, the target accuracy.
	Probability *float64 `json:"probability,omitempty"`
	// CPUs of all workers times predicted time, without the time before the start.
	CPUSeconds *float64 `json:"cpu_seconds,omitempty"`
}

// Admission policies of a cluster.
const (
	AdmissionAdvise  = "advise"  // every job may start; the advice reports the interference
	AdmissionProtect = "protect" // a job that would break a promise is refused
	AdmissionQueue   = "queue"   // such a job is held until it fits; the earliest deadline is first
)

// Verdict is the result of an admission policy for a job.
type Verdict string

// The verdicts.
const (
	Admitted Verdict = "admitted" // the job may start now
	Refused  Verdict = "refused"  // it must not start; the menu lists alternatives
	Queued   Verdict = "queued"   // it must wait until it is admitted
)

// AdmissionRule is what an admission policy compares.
type AdmissionRule string

// Rules of an admission policy.
const (
	AdmissionByPromises AdmissionRule = "promises" // the promises of the running jobs
	AdmissionByCPUs     AdmissionRule = "cpus"     // the CPUs that are free, or that elastic jobs lend
)

// Admission is the result of the cluster's admission policy. Under the policy advise an advice has
// none.
type Admission struct {
	// "protect" or "queue"
	Policy string `json:"policy"`
	// Result of the policy.
	Verdict Verdict `json:"verdict"`
	// What the policy compared: the "promises" of the running jobs, or the "cpus" of the nodes.
	Rule AdmissionRule `json:"rule"`
	// Jobs whose promise a start now would break.
	Breaks []string `json:"breaks,omitempty"`
	// Position in the queue, from 1.
	Position int `json:"position,omitempty"`
	// Predicted time until a queued job starts; absent if unknown.
	StartSeconds *float64 `json:"start_seconds,omitempty"`
	// CPUs that running elastic jobs lend, so that the job may start.
	Loans []Loan `json:"loans,omitempty"`
}

// Loan is the number of CPUs of a running job that lends some to another job.
type Loan struct {
	JobID string `json:"job_id"`
	// CPUs before the loan.
	FromCPUs uint32 `json:"from_cpus"`
	// CPUs during the loan.
	ToCPUs uint32 `json:"to_cpus"`
}

// AdmissionPool is the key of the only pool to which a cluster admits jobs.
const AdmissionPool = "cluster"

// Ticket records an admission or a position in the queue. An advisor must read the last ticket
// before it writes the next one, so that two advisors never assign the same capacity.
type Ticket struct {
	JobID   string  `json:"job_id"`
	Verdict Verdict `json:"verdict"` // admitted or queued
}

var choiceText = map[string]string{
	ChoiceUnbeaten: "unbeaten",
	ChoiceBatch:    "another batch size",
	ChoiceCPUs:     "fewer CPUs",
	ChoiceEpochs:   "fewer epochs",
	ChoiceStart:    "later start",
	ChoiceDeadline: "longer SLO",
}

// Text returns a one-line description.
func (c *Choice) Text() string {
	s := fmt.Sprintf("%s: %s on %s, %s", choiceText[c.Kind], FormatBatchSize(c.BatchSize),
		FormatShape(c.Workers, c.CPUs), FormatCount(uint64(c.Epochs), "epoch"))
	if c.StartSeconds > 0 {
		s += ", started in " + FormatSeconds(c.StartSeconds)
	}
	if c.SLOSeconds > 0 {
		s += ", with an SLO of " + FormatSeconds(c.SLOSeconds)
	}
	if c.PredictedSeconds != nil {
		s += ": done in " + FormatSeconds(*c.PredictedSeconds)
	}
	if c.PredictedAccuracy != nil {
		s += fmt.Sprintf(", accuracy %.4f", *c.PredictedAccuracy)
	}
	if c.CPUSeconds != nil && Processes(c.Workers, c.CPUs) > 1 { // for one CPU it equals the time
		s += ", CPU time " + FormatSeconds(*c.CPUSeconds)
	}
	if c.Probability != nil {
		s += ", probability " + FormatProbability(*c.Probability)
	}
	return s
}
