package advisor

import (
	"time"

	"courier/schemas"
)

// touched returns the running jobs that an event about a job calls to predict
// again: all on its nodes if it came or went, itself after an epoch.
func (c *Cluster) touched(e schemas.Event, j *Job, now time.Time) []*Job {
	if j == nil {
		return nil
	}
	jobs := []*Job{j}
	switch e.(type) {
	case *schemas.Started, *schemas.Ended:
		jobs = append(c.beside(j.Setting.Nodes, j.ID, now), j)
	case *schemas.Submitted:
		return nil
	}
	running := jobs[:0:0]
	for _, j := range jobs {
		if j.State == schemas.StateRunning {
			running = append(running, j)
		}
	}
	return running
}

// Watch predicts every job again that an event touches and returns the warnings
// and all-clears that this calls for, noted in the cluster as those of the log
// are. j is what Apply returned for the event. It is what an Advisor does after
// each event, for whoever replays or simulates a log.
func (c *Cluster) Watch(e schemas.Event, j *Job, cause uint64, r Regressors, now time.Time) []*schemas.Risk {
	var risks []*schemas.Risk
	for _, j := range c.touched(e, j, now) {
		q := c.Again(j, now)
		advice := Decide(q, r, now)
		advice.CauseSequence = cause
		if risk := warn(j, q, advice); risk != nil {
			risk.EventID, risk.CauseSequence = schemas.RiskID(j.ID, cause), cause
			j.Risk = risk
			risks = append(risks, risk)
		}
	}
	return risks
}
