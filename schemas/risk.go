package schemas

import (
	"cmp"
	"fmt"
)

// Causes of a risk.
const (
	CauseEpochs     = "slow_epochs" // the job's epochs take longer than predicted
	CauseIOWait     = "io_wait"     // the same, and the node waits for its disks
	CauseNeighbours = "neighbours"  // more jobs share the node than at the time of the promise
	CauseForeign    = "foreign"     // work unknown to Courier uses more of the node than then
	CauseLate       = "late_start"  // the job started late
	CauseModel      = "regressor"   // none of these: the predictions have changed
	// CauseDiverging: the loss rises. Its warnings and all-clears do not depend on the probability.
	CauseDiverging = "diverging"
)

// Causes lists every cause of a risk.
func Causes() []string {
	return []string{
		CauseEpochs, CauseIOWait, CauseNeighbours, CauseForeign, CauseLate, CauseModel, CauseDiverging,
	}
}

// Risk is job.<id>.risk: a job will probably miss its SLO, or is expected to meet it again. With the
// cause "diverging" its loss rises, or no longer does.
type Risk struct {
	JobStamp
	// Sequence in the stream JOB of the event that revealed it.
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"`
	// True if the risk is over: the probability is above the confidence again, or the loss no longer
	// rises.
	Cleared bool `json:"cleared" ch:"cleared"`
	// Cause of the risk, or of the risk that is over.
	Cause string `json:"cause" ch:"cause"`
	// Probability of meeting the SLO if the job continues unchanged.
	Probability float64 `json:"probability" ch:"probability"`
	// Requested confidence.
	Confidence float64 `json:"confidence" ch:"confidence"`
	// Median of the predicted remaining time.
	PredictedSeconds float64 `json:"predicted_seconds" ch:"predicted_seconds"`
	// Time until the deadline; negative if it has passed.
	LeftSeconds float64 `json:"left_seconds" ch:"left_seconds"`
	// Action that restores the SLO; "keep" if none is known.
	Action string `json:"action" ch:"action"`
	// Batch size to use from the next epoch on.
	BatchSize uint32 `json:"batch_size,omitempty" ch:"batch_size"`
	// Probability of meeting the SLO after the action.
	SavedProbability *float64 `json:"saved_probability,omitempty" ch:"saved_probability"`
	// Loss of accuracy due to the action; negative for a gain.
	AccuracyLoss *float64 `json:"accuracy_loss,omitempty" ch:"accuracy_loss"`
	// The event in one sentence.
	Message string `json:"message" ch:"message"`
}

// RiskID returns the identity of a risk event.
func RiskID(job string, cause uint64) string { return fmt.Sprintf("%s/%d/risk", job, cause) }

// DivergenceID returns the identity of a risk event with CauseDiverging.
func DivergenceID(job string, cause uint64) string {
	return fmt.Sprintf("%s/%d/diverging", job, cause)
}

// Subject implements Event.
func (e *Risk) Subject() string { return JobSubject(e.JobID, EventRisk) }

// Validate implements Event.
func (e *Risk) Validate() error {
	if !finite(&e.PredictedSeconds) || !finite(&e.LeftSeconds) || !finite(e.AccuracyLoss) {
		return Invalid("predicted_seconds", "is not finite")
	}
	return cmp.Or(
		e.JobStamp.validate(),
		OneOf("cause", e.Cause, Causes()...),
		validateRatios([]ratioField{
			{"probability", &e.Probability},
			{"confidence", &e.Confidence},
			{"saved_probability", e.SavedProbability},
		}...),
	)
}
