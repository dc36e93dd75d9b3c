package schemas

import (
	"cmp"
	"fmt"
)

// Moves that a runner can carry out, as its started event names them.
const (
	MoveBatchSize = "batch_size" // another batch size from the next epoch on
	MoveCPUs      = "cpus"       // another number of CPUs from the next epoch on
	MoveLoaders   = "loaders"    // another number of data loaders from the next epoch on
)

// Outcomes of a move.
const (
	MoveApplied    = "applied"     // the CPUs have changed; no epoch with them has ended yet
	MoveCarriedOut = "carried_out" // the first epoch with the move has ended
	MoveKept       = "kept"        // evaluated: the measured gain is close enough to the prediction
	MoveUndone     = "undone"      // evaluated: it is not, and the move is reversed
	MoveRefused    = "refused"     // the runner did not or could not carry out the advice
	MoveDryRun     = "dry_run"     // planned only: the operator has not turned on moves
)

// Means by which a runner carries out a move.
const (
	ByControl    = "control"    // the training program reads the value between epochs
	ByRestart    = "restart"    // the runner restarts the command
	ByWeight     = "weight"     // CPUs: weight of the job's cgroup
	ByCap        = "cap"        // CPUs: weight and upper limit of the job's cgroup
	ByDocker     = "docker"     // CPUs: update of the job's container
	ByKubernetes = "kubernetes" // CPUs: resize of the job's pod
)

// Purposes of moves of CPUs.
const (
	MoveLent     = "lent"      // a job with slack gives CPUs to another one
	MoveReturned = "returned"  // a job gets back CPUs that it lent
	MoveAtRisk   = "at_risk"   // the job would miss its SLO without more CPUs
	MoveLeftOver = "left_over" // no other job needs the CPUs
	// MoveForeignLoad: work outside Courier uses the CPUs.
	MoveForeignLoad = "foreign_load"
	// MoveSaved: neither the SLO nor the speed of the job needs the CPUs, by the objective.
	MoveSaved = "saved"
	// MoveInput: the job waits for its input. It is the purpose of moves of loaders.
	MoveInput = "input"
)

// PlannedMove describes the change in an advice with ActionCPUs or ActionLoaders.
type PlannedMove struct {
	// "lent", "returned", "at_risk", "left_over", "foreign_load", "saved" or, of loaders, "input"
	Purpose string `json:"purpose"`
	// Job that the CPUs are lent to; absent if there is none or if there are several.
	ForJob string `json:"for_job,omitempty"`
	// CPUs before the move.
	FromCPUs uint32 `json:"from_cpus"`
	// CPUs after the move.
	ToCPUs uint32 `json:"to_cpus"`
	// Data loaders before a move of loaders.
	FromLoaders uint32 `json:"from_loaders,omitempty"`
	// Data loaders after it; absent for a move of CPUs.
	ToLoaders uint32 `json:"to_loaders,omitempty"`
	// True if the runner should only report what the move would have done.
	DryRun bool `json:"dry_run,omitempty"`
	// Reason of the policy, such as "share", "left over" or "yield".
	Rule string `json:"rule,omitempty"`
	// Time to the deadline minus the upper bound of the remaining time before the move; negative
	// if the SLO is at risk, absent without an SLO.
	SlackSeconds *float64 `json:"slack_seconds,omitempty"`
	// CPUs that no job and no other work used before the move.
	FreeCPUs uint32 `json:"free_cpus,omitempty"`
	// Other numbers of CPUs of the request that were turned down.
	RejectedCPUs []uint32 `json:"rejected_cpus,omitempty"`
	// Why, for each of rejected_cpus.
	RejectedReasons []string `json:"rejected_reasons,omitempty"`
	// Fall of the loss, as a share of its largest value or of its predicted fall, per second and node;
	// absent if it does not fall or did not count.
	Growth float64 `json:"growth,omitempty"`
	// What limited the job before the move, as in its status; absent if that is unknown.
	Bottleneck Bottleneck `json:"bottleneck,omitempty"`
	// Predicted speed with the move divided by that without it, by the job's own epochs; absent if
	// the prediction rests on other runs.
	SpeedRatio float64 `json:"speed_ratio,omitempty"`
}

// Moved is job.<id>.moved: the outcome of a move that was advised for a running job, with its
// predicted and measured effect. A move is carried out first and evaluated once. Before that, the
// runner reports when a change of the CPUs is in effect, also if it undoes a move. Unknown figures
// are absent.
type Moved struct {
	JobStamp
	// Sequence of the cause of the advice that requested the move.
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"`
	// "batch_size", "cpus" or "loaders"
	Move string `json:"move" ch:"move"`
	// "applied", "carried_out", "kept", "undone", "refused" or "dry_run"
	Outcome string `json:"outcome" ch:"outcome"`
	// "control", "restart", "weight", "cap", "docker" or "kubernetes"
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
	// Measured mean time of the first epochs with the move; in a dry run, after the advice.
	AfterEpochSeconds *float64 `json:"after_epoch_seconds,omitempty" ch:"after_epoch_seconds"`
	// Number of epochs in that mean.
	EpochsMeasured uint32 `json:"epochs_measured" ch:"epochs_measured"`

	// Measured divided by predicted gain in time per epoch; absent if no gain was predicted.
	GainRatio *float64 `json:"gain_ratio,omitempty" ch:"gain_ratio"`

	// Why the move was refused, kept or undone.
	Reason string `json:"reason,omitempty" ch:"reason"`

	// CPUs before a move of CPUs; 0 for other moves.
	FromCPUs uint32 `json:"from_cpus,omitempty" ch:"from_cpus"`
	// Advised CPUs; 0 for other moves.
	ToCPUs uint32 `json:"to_cpus,omitempty" ch:"to_cpus"`
	// "lent", "returned", "at_risk", "left_over", "foreign_load" or "saved"; "input" of loaders; empty for
	// other moves.
	Purpose string `json:"purpose,omitempty" ch:"purpose"`
	// Job that the CPUs are lent to; empty if there is none or if there are several.
	ForJob string `json:"for_job,omitempty" ch:"for_job"`

	// Reason of the policy, such as "share", "left over" or "yield"; empty if it gave none.
	Rule string `json:"rule,omitempty" ch:"rule"`
	// Predicted probability of meeting the SLO without the move.
	BeforeProbability *float64 `json:"before_probability,omitempty" ch:"before_probability"`
	// Predicted probability of meeting the SLO with the move.
	AfterProbability *float64 `json:"after_probability,omitempty" ch:"after_probability"`
	// Time to the deadline minus the upper bound of the remaining time before the move; negative
	// if the SLO was at risk.
	SlackSeconds *float64 `json:"slack_seconds,omitempty" ch:"slack_seconds"`
	// CPUs that no job and no other work used before the move.
	FreeCPUs uint32 `json:"free_cpus,omitempty" ch:"free_cpus"`
	// Other numbers of CPUs of the request that were turned down.
	RejectedCPUs []uint32 `json:"rejected_cpus,omitempty" ch:"rejected_cpus"`
	// Why, for each of rejected_cpus.
	RejectedReasons []string `json:"rejected_reasons,omitempty" ch:"rejected_reasons"`
	// What limited the job before the move, as in its status; empty if that is unknown.
	Bottleneck string `json:"bottleneck,omitempty" ch:"bottleneck"`
	// Data loaders before a move of loaders; 0 for other moves.
	FromLoaders uint32 `json:"from_loaders,omitempty" ch:"from_loaders"`
	// Advised data loaders; 0 for other moves.
	ToLoaders uint32 `json:"to_loaders,omitempty" ch:"to_loaders"`
}

// MovedID returns the identity of a moved event; number counts the moved events of the run.
func MovedID(job string, run, number uint32) string {
	return fmt.Sprintf("%s/%d/%d/moved", job, run, number)
}

// Subject implements Event.
func (e *Moved) Subject() string { return JobSubject(e.JobID, EventMoved) }

// Validate implements Event.
func (e *Moved) Validate() error {
	leastCPUs := uint32(0)
	if e.Move == MoveCPUs {
		leastCPUs = 1
	}
	for _, v := range []*float64{
		e.PredictedSeconds, e.UnmovedSeconds, e.PredictedEpochSeconds, e.UnmovedEpochSeconds,
		e.BeforeEpochSeconds, e.AfterEpochSeconds, e.GainRatio,
		e.BeforeProbability, e.AfterProbability, e.SlackSeconds,
	} {
		if !finite(v) {
			return Invalid("after_epoch_seconds", "is not finite")
		}
	}
	if len(e.RejectedCPUs) != len(e.RejectedReasons) {
		return Invalid("rejected_reasons", "%d reasons for %d numbers of CPUs",
			len(e.RejectedReasons), len(e.RejectedCPUs))
	}
	return cmp.Or(
		e.JobStamp.validate(),
		OneOf("move", e.Move, MoveBatchSize, MoveCPUs, MoveLoaders),
		OneOf("outcome", e.Outcome,
			MoveApplied, MoveCarriedOut, MoveKept, MoveUndone, MoveRefused, MoveDryRun),
		OneOf("means", e.Means, ByControl, ByRestart, ByWeight, ByCap, ByDocker, ByKubernetes),
		OneOf("purpose", e.Purpose,
			"", MoveLent, MoveReturned, MoveAtRisk, MoveLeftOver, MoveForeignLoad, MoveSaved, MoveInput),
		validateOptionalToken("for_job", e.ForJob),
		validateRange("from_batch_size", e.FromBatchSize, 0, MaxBatchSize),
		validateRange("to_batch_size", e.ToBatchSize, 0, MaxBatchSize),
		validateRange("from_cpus", e.FromCPUs, leastCPUs, MaxCPUs),
		validateRange("to_cpus", e.ToCPUs, leastCPUs, MaxCPUs),
		validateRange("from_loaders", e.FromLoaders, 0, MaxLoaders),
		validateRange("to_loaders", e.ToLoaders, 0, MaxLoaders),
		validateLength("reason", len(e.Reason), maxReason),
	)
}
