package schemas

import "fmt"

// Moves that a runner can do, as its started event names them.
const MoveBatchSize = "batch_size" // another batch size from the next epoch on

// What became of a move.
const (
	MoveCarriedOut = "carried_out" // the first epoch with it has ended
	MoveKept       = "kept"        // judged: it brought what was predicted, or enough of it
	MoveUndone     = "undone"      // judged: it did not, and is taken back
	MoveRefused    = "refused"     // it was advised, and was not or could not be done
)

// How a runner changes the batch size of its training.
const (
	ByControl = "control" // the training reads it between epochs
	ByRestart = "restart" // the command is started again
)

// Moved is job.<id>.moved: what became of a move that was advised for a running
// job, with its predicted and measured effect. A move is judged once and is
// carried out before that; figures that nobody knows are absent.
type Moved struct {
	JobStamp
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"`   // that of the advice that asked for it
	Move          string `json:"move" ch:"move"`                       // "batch_size"
	Outcome       string `json:"outcome" ch:"outcome"`                 // "carried_out", "kept", "undone" or "refused"
	Means         string `json:"means" ch:"means"`                     // "control" or "restart"
	FromBatchSize uint32 `json:"from_batch_size" ch:"from_batch_size"` // samples in one iteration before
	ToBatchSize   uint32 `json:"to_batch_size" ch:"to_batch_size"`     // and as advised
	Epoch         uint32 `json:"epoch,omitempty" ch:"epoch"`           // the first with it; 0: none

	PredictedSeconds      *float64 `json:"predicted_seconds,omitempty" ch:"predicted_seconds"`             // that the rest of the job was predicted to take with it
	UnmovedSeconds        *float64 `json:"unmoved_seconds,omitempty" ch:"unmoved_seconds"`                 // and without it
	PredictedEpochSeconds *float64 `json:"predicted_epoch_seconds,omitempty" ch:"predicted_epoch_seconds"` // of an epoch with it, their mean
	UnmovedEpochSeconds   *float64 `json:"unmoved_epoch_seconds,omitempty" ch:"unmoved_epoch_seconds"`     // and without it
	BeforeEpochSeconds    *float64 `json:"before_epoch_seconds,omitempty" ch:"before_epoch_seconds"`       // measured: mean of the last epochs before it
	AfterEpochSeconds     *float64 `json:"after_epoch_seconds,omitempty" ch:"after_epoch_seconds"`         // measured: mean of the first epochs with it
	EpochsMeasured        uint32   `json:"epochs_measured" ch:"epochs_measured"`                           // behind that mean

	GainRatio *float64 `json:"gain_ratio,omitempty" ch:"gain_ratio"` // gain in time per epoch that came / that was predicted; absent if none was

	Reason string `json:"reason,omitempty" ch:"reason"` // why it was refused, kept or undone, in words
}

// MovedID returns the identity of a moved event, the number-th of its run.
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
		return Invalid("outcome", "%q is not carried_out, kept, undone or refused", clip(e.Outcome))
	}
	if e.Means != ByControl && e.Means != ByRestart {
		return Invalid("means", "%q is neither %q nor %q", clip(e.Means), ByControl, ByRestart)
	}
	for _, size := range []uint32{e.FromBatchSize, e.ToBatchSize} {
		if size < 1 || size > MaxBatchSize {
			return Invalid("to_batch_size", "%d is not between 1 and %d", size, MaxBatchSize)
		}
	}
	for _, v := range []*float64{e.PredictedSeconds, e.UnmovedSeconds, e.PredictedEpochSeconds, e.UnmovedEpochSeconds, e.BeforeEpochSeconds, e.AfterEpochSeconds, e.GainRatio} {
		if !finite(v) {
			return Invalid("after_epoch_seconds", "is not finite")
		}
	}
	if len(e.Reason) > 4<<10 {
		return Invalid("reason", "%d bytes are more than 4096", len(e.Reason))
	}
	return nil
}
