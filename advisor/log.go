package advisor

import (
	"context"

	"courier/advisor/cluster"
	"courier/schemas"
)

// submission returns the submission of a job from the event log, or nil if there is none.
func (a *Advisor) submission(ctx context.Context, id string) (*schemas.Submitted, error) {
	subject := schemas.JobSubject(id, schemas.EventSubmitted)
	records, err := a.bus.Last(ctx, schemas.StreamJob, subject)
	if err != nil {
		return nil, a.logUnavailable(id, err)
	}
	for _, r := range records {
		if e, ok := r.Event.(*schemas.Submitted); ok {
			return e, nil
		}
	}
	return nil, nil
}

// logUnavailable logs why the event log could not be read, and returns the error for the reply.
func (a *Advisor) logUnavailable(id string, err error) error {
	a.log.Warn("event log not read", "job_id", id, "error", err)
	return &schemas.Error{
		Code: schemas.CodeUnavailable, Message: "the event log does not answer; retry in a moment",
	}
}

// job returns a copy of a job from memory or from the event log, or a not_found error.
func (a *Advisor) job(ctx context.Context, id string) (*cluster.Job, error) {
	a.waitUntilKnown(ctx, id)
	a.mu.RLock()
	if j := a.cluster.Job(id); j != nil {
		found := *j
		a.mu.RUnlock()
		return &found, nil
	}
	a.mu.RUnlock()
	j, err := a.recorded(ctx, id)
	if err == nil && j == nil {
		err = &schemas.Error{Code: schemas.CodeNotFound, Field: "id", Message: "no job " + id}
	}
	return j, err
}

// recorded rebuilds a job from the last event of each kind in the event log; nil if the log has
// none.
func (a *Advisor) recorded(ctx context.Context, id string) (*cluster.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	records, err := a.bus.Last(ctx, schemas.StreamJob, schemas.JobSubject(id, "*"))
	if err != nil {
		return nil, a.logUnavailable(id, err)
	}
	c := cluster.New()
	for _, r := range records {
		c.Apply(r.Event, r.Sequence, r.StoredAt)
	}
	return c.Job(id), nil
}
