package decide

import (
	"fmt"

	"courier/advisor/cluster"
	"courier/schemas"
)

// WarnDivergence returns a warning if the loss of a running job rises, the all-clear if it no longer
// does, or nil if neither is due. A risk has the probability of an SLO, so a job without one has none.
func WarnDivergence(j *cluster.Job, q *Question, a *schemas.Advice) *schemas.Risk {
	isDiverging, isWarned := j.Losses.IsDiverging(), j.IsWarnedOfDivergence()
	if isDiverging == isWarned || len(j.Losses.Reports) == 0 {
		return nil
	}
	_, r := riskOf(j, q, a, isWarned)
	if r != nil {
		r.Cause, r.Message = schemas.CauseDiverging, divergenceMessage(&j.Losses, isWarned)
	}
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
