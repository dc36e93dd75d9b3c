package decide

import (
	"fmt"

	"courier/advisor/cluster"
	"courier/schemas"
)

// isDivergenceWarned reports whether the last warning of a rising loss is not over yet.
func isDivergenceWarned(j *cluster.Job) bool {
	d := j.Divergence
	return d != nil && d.Run == j.Run && !d.Cleared
}

// WarnDivergence returns a warning if the loss of a running job rises, the all-clear if it no longer
// does, or nil if neither is due. A risk has the probability of an SLO, so a job without one has none.
func WarnDivergence(j *cluster.Job, q *Question, a *schemas.Advice) *schemas.Risk {
	isDiverging, isWarned := j.Losses.IsDiverging(), isDivergenceWarned(j)
	if isDiverging == isWarned || len(j.Losses.Reports) == 0 {
		return nil
	}
	now := a.Running(j.Setting.BatchSize, j.Setting.CPUs)
	if now == nil || now.Probability == nil || now.PredictedSeconds == nil {
		return nil
	}
	r := &schemas.Risk{
		Cleared:          isWarned,
		Cause:            schemas.CauseDiverging,
		Probability:      *now.Probability,
		Confidence:       a.Confidence,
		PredictedSeconds: *now.PredictedSeconds,
		LeftSeconds:      q.Left(),
		Action:           string(schemas.ActionKeep),
	}
	r.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run}
	r.Message = divergenceMessage(&j.Losses, isWarned)
	return r
}

// divergenceMessage describes a rising loss, or its end.
func divergenceMessage(l *cluster.LossHistory, isOver bool) string {
	name := "loss"
	if l.IsError {
		name = "error (1 - accuracy)"
	}
	first, last := l.Reports[0].Loss, l.Reports[len(l.Reports)-1].Loss
	if isOver {
		return fmt.Sprintf("all clear: the %s no longer rises, it is %.4g", name, last)
	}
	return fmt.Sprintf("the %s rose in each of the last %d epochs, from %.4g to %.4g",
		name, len(l.Reports)-1, first, last)
}
