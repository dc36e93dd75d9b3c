package advisor

import (
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// runEvent returns an event of the advisor about the end of a run.
func runEvent(j *cluster.Job, outcome, id, reason string, now time.Time) *schemas.Ended {
	return &schemas.Ended{
		JobStamp: schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: now}, JobID: j.ID, Run: j.Run},
		Setting:  j.Setting, Outcome: outcome, EpochsDone: j.EpochsDone, Reason: reason,
	}
}

func cancelledEvent(j *cluster.Job, reason string, now time.Time) *schemas.Ended {
	id := schemas.EndedID(j.ID, j.Run, schemas.EventCancelled)
	return runEvent(j, schemas.EventCancelled, id, reason, now)
}
