package decide

import (
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// Watch re-predicts every job that an event affects. It records the resulting warnings and
// all-clears in the cluster, as Apply does, and returns them. j is the result of Apply for the
// event. Replays and simulations call it; an Advisor does the same after each event.
func Watch(
	c *cluster.Cluster, e schemas.Event, j *cluster.Job, cause uint64, r Regressors, now time.Time,
) []*schemas.Risk {
	var risks []*schemas.Risk
	for _, j := range c.Affected(e, j, now) {
		q := AskRunning(c, j, now)
		advice := Decide(q, r, now)
		advice.CauseSequence = cause
		if risk := Warn(j, q, advice); risk != nil {
			risk.EventID, risk.CauseSequence = schemas.RiskID(j.ID, cause), cause
			j.Risk = risk
			risks = append(risks, risk)
		}
	}
	return risks
}
