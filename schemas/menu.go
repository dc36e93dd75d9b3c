package schemas

import (
	"fmt"
	"time"
)

// Kinds of a choice: what it changes.
const (
	ChoiceUnbeaten = "unbeaten"       // no other alternative is faster, more accurate and cheaper: yours to choose where no SLO was given
	ChoiceBatch    = "batch_size"     // another batch size
	ChoiceCPUs     = "cpus"           // fewer CPUs
	ChoiceEpochs   = "epochs"         // fewer epochs
	ChoiceStart    = "later_start"    // started later, when others have ended
	ChoiceDeadline = "later_deadline" // with a longer SLO, started later where it must be
)

// Choice is an entry of an advice's menu: another way to run the job. A way out
// keeps its own SLO with the confidence asked for, and that of every running job.
type Choice struct {
	Kind              string   `json:"kind"`                    // what it changes
	BatchSize         uint32   `json:"batch_size"`              // samples in one iteration
	CPUs              uint32   `json:"cpus"`                    // processes
	Epochs            uint32   `json:"epochs"`                  // to run
	StartSeconds      float64  `json:"start_seconds,omitempty"` // to wait before the start; absent: start now
	SLOSeconds        float64  `json:"slo_seconds,omitempty"`   // the SLO to ask for; absent: that of the request
	PredictedSeconds  *float64 `json:"predicted_seconds,omitempty"`
	UpperBoundSeconds *float64 `json:"upper_bound_seconds,omitempty"` // kept with the requested confidence
	PredictedAccuracy *float64 `json:"predicted_accuracy,omitempty"`  // after the last epoch, 0 to 1
	Probability       *float64 `json:"probability,omitempty"`         // of meeting the SLO, and the target accuracy if there is one
	CPUSeconds        *float64 `json:"cpu_seconds,omitempty"`         // CPUs times predicted time, waiting left out
}

// ProbeEpoch is an epoch that teaches most about a model of which nothing is known.
type ProbeEpoch struct {
	BatchSize        uint32   `json:"batch_size"`
	CPUs             uint32   `json:"cpus"`
	Epochs           uint32   `json:"epochs"`
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty"` // not set any more: figures of other models are no prediction
}

// Admission policies of a cluster.
const (
	AdmissionAdvise  = "advise"  // every job may start; what it does to others is told
	AdmissionProtect = "protect" // a job that would break a promise given is refused
	AdmissionQueue   = "queue"   // it is held, and started when it fits; the earliest deadline first
)

// Verdict of an admission policy on a job.
type Verdict string

// The verdicts.
const (
	Admitted Verdict = "admitted" // it may start now
	Refused  Verdict = "refused"  // it must not start; the menu says what could
	Queued   Verdict = "queued"   // it is held until job.<id>.admitted, or job.<id>.advice with action "start"
)

// Admission is what the cluster's policy says to a job; an advice has none under
// the policy advise.
type Admission struct {
	Policy       string   `json:"policy"`                  // protect or queue
	Verdict      Verdict  `json:"verdict"`                 // what it says
	Breaks       []string `json:"breaks,omitempty"`        // jobs whose promise a start now would break
	Position     int      `json:"position,omitempty"`      // in the queue, from 1
	StartSeconds *float64 `json:"start_seconds,omitempty"` // until a queued job is predicted to start; absent if nobody knows
}

// AdmissionPool is the key of the one pool that a cluster admits its jobs to.
const AdmissionPool = "cluster"

// Ticket is an admission or a place in the queue: whoever takes the next one
// knows of it first, so that two advisors never give the same room away.
type Ticket struct {
	JobID   string    `json:"job_id"`
	Verdict Verdict   `json:"verdict"` // admitted or queued
	At      time.Time `json:"at"`      // by the advisor's clock
}

var choiceText = map[string]string{
	ChoiceUnbeaten: "unbeaten", ChoiceBatch: "another batch size", ChoiceCPUs: "fewer CPUs", ChoiceEpochs: "fewer epochs",
	ChoiceStart: "later start", ChoiceDeadline: "longer SLO",
}

// Text describes the choice in a line.
func (c *Choice) Text() string {
	s := fmt.Sprintf("%s: batch size %d on %s, %s",
		choiceText[c.Kind], c.BatchSize, FormatCPUs(c.CPUs), FormatCount(uint64(c.Epochs), "epoch"))
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
	if c.CPUSeconds != nil && c.CPUs > 1 { // of one CPU it is the time
		s += ", CPU time " + FormatSeconds(*c.CPUSeconds)
	}
	if c.Probability != nil {
		s += ", kept with probability " + FormatProbability(*c.Probability)
	}
	return s
}
