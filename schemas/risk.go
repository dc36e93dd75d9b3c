package schemas

import "fmt"

// Why a promise is at risk.
const (
	CauseEpochs     = "slow_epochs" // its own epochs take longer than predicted
	CauseIOWait     = "io_wait"     // they do, and the node waits for its disks
	CauseNeighbours = "neighbours"  // more runs beside it than when it was promised
	CauseForeign    = "foreign"     // work unknown to Courier takes more of its node than then
	CauseLate       = "late_start"  // it was started late
	CauseModel      = "regressor"   // nothing of this: the predictions have changed
)

// Risk is job.<id>.risk: the probability that a job keeps its SLO fell under its
// confidence, or is back above it.
type Risk struct {
	JobStamp
	CauseSequence    uint64   `json:"cause_sequence" ch:"cause_sequence"`                 // sequence in JOB of the event that told it
	Cleared          bool     `json:"cleared" ch:"cleared"`                               // all clear: it is back above
	Cause            string   `json:"cause" ch:"cause"`                                   // why; of an all-clear, of the risk that is over
	Probability      float64  `json:"probability" ch:"probability"`                       // of keeping the SLO as it runs
	Confidence       float64  `json:"confidence" ch:"confidence"`                         // that was asked for
	PredictedSeconds float64  `json:"predicted_seconds" ch:"predicted_seconds"`           // that it still takes, the median
	LeftSeconds      float64  `json:"left_seconds" ch:"left_seconds"`                     // that the SLO leaves; negative if it is over
	Action           string   `json:"action" ch:"action"`                                 // what saves it; keep: nothing that is known
	BatchSize        uint32   `json:"batch_size,omitempty" ch:"batch_size"`               // to change to at the next epoch
	SavedProbability *float64 `json:"saved_probability,omitempty" ch:"saved_probability"` // of keeping the SLO then
	AccuracyLoss     *float64 `json:"accuracy_loss,omitempty" ch:"accuracy_loss"`         // what it costs in accuracy; negative is a gain
	Message          string   `json:"message" ch:"message"`                               // all this in a sentence
}

// RiskID returns the identity of a risk event.
func RiskID(job string, cause uint64) string { return fmt.Sprintf("%s/%d/risk", job, cause) }

// Subject implements Event.
func (e *Risk) Subject() string { return JobSubject(e.JobID, EventRisk) }

// Validate implements Event.
func (e *Risk) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	switch e.Cause {
	case CauseEpochs, CauseIOWait, CauseNeighbours, CauseForeign, CauseLate, CauseModel:
	default:
		return Invalid("cause", "%q is not a cause", clip(e.Cause))
	}
	for _, p := range []*float64{&e.Probability, &e.Confidence, e.SavedProbability} {
		if err := validateRatio("probability", p); err != nil {
			return err
		}
	}
	if !finite(&e.PredictedSeconds) || !finite(&e.LeftSeconds) || !finite(e.AccuracyLoss) {
		return Invalid("predicted_seconds", "is not finite")
	}
	return nil
}
