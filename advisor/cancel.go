package advisor

import (
	"context"
	"fmt"

	"courier/schemas"
)

// cancelJob publishes the end of a job; its runner listens for that event.
func (a *Advisor) cancelJob(ctx context.Context, q *schemas.JobCancelRequest) (any, error) {
	j, err := a.job(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if j.IsOver() && j.State != schemas.StateCancelled {
		return nil, &schemas.Error{
			Code: schemas.CodeConflict, Field: "id",
			Message: fmt.Sprintf("job %s has ended already: %s", q.JobID, j.State),
		}
	}
	if !j.IsOver() {
		ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
		defer cancel()
		sequence, err := a.bus.Publish(ctx, cancelledEvent(j, q.Reason, a.now()))
		if err != nil {
			return nil, err
		}
		a.waitFor(ctx, sequence)
	}
	return a.status(ctx, &schemas.JobStatusRequest{JobID: q.JobID})
}
