package decide

import (
	"fmt"

	"courier/advisor/cluster"
	"courier/schemas"
)

// Warn compares a new advice for a running job with its promise. It returns a warning or an
// all-clear, or nil if neither is due. There is one warning per job until its all-clear. A job without
// a promise is warned of when it will probably miss its SLO or, if that was said at its start, when it will
// nearly certainly.
func Warn(j *cluster.Job, q *Question, a *schemas.Advice) *schemas.Risk {
	if j.Promise == nil || j.Request == nil {
		return nil
	}
	warned := j.IsAtRisk()
	now, r := riskOf(j, q, a, warned)
	if r == nil {
		return nil
	}
	isDue := q.isLikely(r.Probability, !warned) == warned
	if was := j.Promise.Probability; !warned && was != nil && !q.isLikely(*was, true) {
		isDue = r.Probability < 1-a.Confidence && *was >= 1-a.Confidence
	}
	if !isDue {
		return nil
	}
	if warned {
		r.Cause = j.Risk.Cause
		r.Message = fmt.Sprintf("all clear: %s, SLO met%s with probability %s", needed(r), reached(q, a),
			schemas.FormatProbability(r.Probability))
		return r
	}
	r.Cause = causeOf(j, q, a)
	if c := a.Chosen; a.Action == schemas.ActionBatch && c.Probability != nil {
		r.Action, r.BatchSize, r.SavedProbability = string(a.Action), c.BatchSize, c.Probability
		if c.PredictedAccuracy != nil && now.PredictedAccuracy != nil {
			r.AccuracyLoss = new(*now.PredictedAccuracy - *c.PredictedAccuracy)
		}
	}
	r.Message = warning(r, reached(q, a))
	return r
}

// riskOf returns the prediction for a job as it runs, and a risk with its figures; nil if they are unknown.
func riskOf(j *cluster.Job, q *Question, a *schemas.Advice, cleared bool) (*schemas.Alternative, *schemas.Risk) {
	now := a.Running(j.Setting.BatchSize, j.Setting.CPUs)
	if now == nil || now.Probability == nil || now.PredictedSeconds == nil {
		return nil, nil
	}
	return now, &schemas.Risk{
		JobStamp:         schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run},
		Cleared:          cleared,
		Probability:      *now.Probability,
		Confidence:       a.Confidence,
		PredictedSeconds: *now.PredictedSeconds + q.Ahead.Seconds(),
		LeftSeconds:      q.Left() + q.Ahead.Seconds(),
		Action:           string(schemas.ActionKeep),
	}
}

// reached returns what the probability of a job is about beside its SLO.
func reached(q *Question, a *schemas.Advice) string {
	if a.Chosen.AccuracyProbability == nil {
		return ""
	}
	return schemas.AndReached(q.Request.TargetAccuracy)
}

// warning returns the message of a risk.
func warning(r *schemas.Risk, reached string) string {
	s := fmt.Sprintf("%s: the SLO is met%s with probability %s, %.4g was requested; %s",
		needed(r), reached, schemas.FormatProbability(r.Probability), r.Confidence, causeText[r.Cause])
	if r.BatchSize == 0 {
		return s
	}
	s += fmt.Sprintf("; batch size %d meets it with probability %s",
		r.BatchSize, schemas.FormatProbability(*r.SavedProbability))
	if loss := r.AccuracyLoss; loss != nil && *loss < 0 {
		s += fmt.Sprintf(" and gains %.4f of accuracy", -*loss)
	} else if loss != nil {
		s += fmt.Sprintf(" and costs %.4f of accuracy", *loss)
	}
	return s
}

// needed compares the remaining time of a job with the time left of its SLO.
func needed(r *schemas.Risk) string {
	if r.LeftSeconds < 0 {
		return fmt.Sprintf("it takes %s more, and the SLO has been over for %s",
			schemas.FormatSeconds(r.PredictedSeconds), schemas.FormatSeconds(-r.LeftSeconds))
	}
	return fmt.Sprintf("it takes %s more, and the SLO leaves %s",
		schemas.FormatSeconds(r.PredictedSeconds), schemas.FormatSeconds(r.LeftSeconds))
}

var causeText = map[string]string{
	schemas.CauseEpochs: "its epochs take longer than predicted",
	schemas.CauseIOWait: "its epochs take longer than predicted, " +
		"and the node waits for its disks",
	schemas.CauseNeighbours: "more jobs run beside it than when it was promised",
	schemas.CauseForeign: "foreign load takes more of its node " +
		"than when it was promised",
	schemas.CauseLate:  "it was started late",
	schemas.CauseModel: "the predictions have changed",
}

// Ratios above which a cause is considered.
const (
	slowRatio   = 0.03 // excess of the job's own epochs over their prediction
	ioWaitRatio = 0.1  // I/O wait of the node's CPUs
	lateRatio   = 0.05 // time between submission and start as a share of the SLO
)

// rise returns the increase of a ratio; 0 unless both values are known.
func rise(from, to schemas.Ratio) float64 {
	if !from.Known || !to.Known {
		return 0
	}
	return to.Value - from.Value
}

// causeOf returns the most plausible cause of a risk. Additional load on the node is the cause if
// it grew more than the job's own epochs slowed down. Otherwise the cause is slow epochs, with or
// without I/O wait. A late start is considered last.
func causeOf(j *cluster.Job, q *Question, a *schemas.Advice) string {
	slow := a.EpochRatio - 1
	moreProcesses := 0.0
	if promised := j.Promise.Load.Processes; promised > 0 {
		moreProcesses = a.Load.Processes/promised - 1
	}
	foreign := rise(j.Promise.Load.ForeignCPURatio, a.Load.ForeignCPURatio)
	waits := rise(j.Promise.Load.ForeignIOWaitRatio, a.Load.ForeignIOWaitRatio)
	switch {
	case foreign > slowRatio && foreign >= moreProcesses:
		return schemas.CauseForeign
	case moreProcesses > slowRatio && moreProcesses >= slow:
		return schemas.CauseNeighbours
	case max(slow, waits) > slowRatio && j.IOWait > ioWaitRatio:
		return schemas.CauseIOWait
	case slow > slowRatio, q.Ahead > 0, IsOverdue(q.Self.ObservedEpochs, q.Self.Together, q.Self.Since):
		return schemas.CauseEpochs
	case j.StartedAt.Sub(j.Promise.At).Seconds() > lateRatio*a.SLOSeconds:
		return schemas.CauseLate
	}
	return schemas.CauseModel
}
