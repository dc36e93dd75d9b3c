package schemas

import "fmt"

// MoveBatchSize is the move that a runner can carry out, as its started event names it: another
// batch size from the next epoch on.
const MoveBatchSize = "batch_size"

// Outcomes of a move.
const (
	MoveCarriedOut = "carried_out" // the first epoch with the move has ended
	MoveKept       = "kept"        // evaluated: the measured gain is close enough to the prediction
	MoveUndone     = "undone"      // evaluated: it is not, and the move is reversed
	MoveRefused    = "refused"     // the runner did not or could not carry out the advice
)

// Means by which a runner changes the batch size.
const (
	ByControl = "control" // the training program reads it between epochs
	ByRestart = "restart" // the runner restarts the command
)

// Moved is job.<id>.moved: the outcome of a move that was advised for a running job, with its
// predicted and measured effect. A move is carried out first and evaluated once. Unknown figures
// are absent.
type Moved struct {
	JobStamp
	// Sequence of the cause of the advice that requested the move.
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"`
	// "batch_size"
	Move string `json:"move" ch:"move"`
	// "carried_out", "kept", "undone" or "refused"
	Outcome string `json:"outcome" ch:"outcome"`
	// "control" or "restart"
	Means string `json:"means" ch:"means"`
	// Samples per iteration before the move.
	FromBatchSize uint32 `json:"from_batch_size" ch:"from_batch_size"`
	// Advised samples per iteration.
	ToBatchSize uint32 `json:"to_batch_size" ch:"to_batch_size"`
	// First epoch with the move; 0 if there is none.
	Epoch uint32 `json:"epoch,omitempty" ch:"epoch"`

	// Predicted remaining time with the move.
	PredictedSeconds *float64 `json:"predicted_seconds,omitempty" ch:"predicted_seconds"`
	// Predicted remaining time without the move.
	UnmovedSeconds *float64 `json:"unmoved_seconds,omitempty" ch:"unmoved_seconds"`
	// Predicted mean epoch time with the move.
	PredictedEpochSeconds *float64 `json:"predicted_epoch_seconds,omitempty" ch:"predicted_epoch_seconds"`
	// Predicted mean epoch time without the move.
	UnmovedEpochSeconds *float64 `json:"unmoved_epoch_seconds,omitempty" ch:"unmoved_epoch_seconds"`
	// Measured mean time of the last epochs before the move.
	BeforeEpochSeconds *float64 `json:"before_epoch_seconds,omitempty" ch:"before_epoch_seconds"`
	// Measured mean time of the first epochs with the move.
	AfterEpochSeconds *float64 `json:"after_epoch_seconds,omitempty" ch:"after_epoch_seconds"`
	// Number of epochs in that mean.
	EpochsMeasured uint32 `json:"epochs_measured" ch:"epochs_measured"`

	// Measured divided by predicted gain in time per epoch; absent if no gain was predicted.
	GainRatio *float64 `json:"gain_ratio,omitempty" ch:"gain_ratio"`

	// Why the move was refused, kept or undone.
	Reason string `json:"reason,omitempty" ch:"reason"`
}

// MovedID returns the identity of a moved event; number counts the moved events of the run.
func MovedID(job string, run, number uint32) string {
	return fmt.Sprintf("%s/%d/%d/moved", job, run, number)
}

// Subject implements Event.
func (e *Moved) Subject() string { return JobSubject(e.JobID, EventMoved) }

// Validate implements Event.
func (e *Moved) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	if e.Move != MoveBatchSize {
		return Invalid("move", "%q is not %q", clip(e.Move), MoveBatchSize)
	}
	switch e.Outcome {
	case MoveCarriedOut, MoveKept, MoveUndone, MoveRefused:
	default:
		return Invalid("outcome", "%q is not carried_out, kept, undone or refused",
			clip(e.Outcome))
	}
	if e.Means != ByControl && e.Means != ByRestart {
		return Invalid("means", "%q is not %q or %q", clip(e.Means), ByControl, ByRestart)
	}
	for _, size := range []uint32{e.FromBatchSize, e.ToBatchSize} {
		if size < 1 || size > MaxBatchSize {
			return Invalid("to_batch_size", "%d is not between 1 and %d", size, MaxBatchSize)
		}
	}

	for _, v := range []*float64{
		e.PredictedSeconds, e.UnmovedSeconds, e.PredictedEpochSeconds, e.UnmovedEpochSeconds,
		e.BeforeEpochSeconds, e.AfterEpochSeconds, e.GainRatio,
	} {
		if !finite(v) {
			return Invalid("after_epoch_seconds", "is not finite")
		}
	}
	if len(e.Reason) > 4<<10 {
		return Invalid("reason", "%d bytes are more than 4096", len(e.Reason))
	}
	return nil
}
