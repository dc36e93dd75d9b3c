package advisor

import (
	"context"
	"fmt"
	"strings"

	"courier/schemas"
)

// submitFor is submit of a person: the job is his.
func (a *Advisor) submitFor(
	ctx context.Context, person string, q *schemas.JobRequest,
) (any, error) {
	if q.User == "" {
		q.User = person
	}
	if q.User != person {
		return nil, a.forbid(person, "user", "%s cannot submit a job for %q", person, q.User)
	}
	return a.submit(ctx, q)
}

// cancelFor is cancel by a person, of a job of his own.
func (a *Advisor) cancelFor(
	ctx context.Context, person string, q *schemas.JobCancelRequest,
) (any, error) {
	owner, known, err := a.ownerOf(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if known && owner != person {
		return nil, a.forbid(person, "id", "job %s is %s", q.JobID, possessive(owner))
	}
	return a.cancel(ctx, q)
}

// tellFor records an event that a person tells of a job of his own. A job that
// nobody submitted is his who starts it.
func (a *Advisor) tellFor(ctx context.Context, person string, e schemas.Event) (any, error) {
	id := jobOf(e)
	if !strings.HasPrefix(e.ID(), id+"/") {
		return nil, schemas.Invalid("event_id", "%.80q is not an identity of job %s", e.ID(), id) // it would stand in another's way
	}
	owner, known, err := a.ownerOf(ctx, id)
	if err != nil {
		return nil, err
	}
	started, starts := e.(*schemas.Started)
	switch {
	case known && owner != person:
		return nil, a.forbid(person, "job_id", "job %s is %s", id, possessive(owner))
	case !known && !starts:
		return nil, a.forbid(person, "job_id", "nobody has submitted or started a job %s", id)
	case starts && started.User != "" && started.User != person:
		return nil, a.forbid(person, "user", "%s cannot start a job for %q", person, started.User)
	case starts:
		started.User = person
	}
	sequence, err := a.bus.Publish(ctx, e)
	if err != nil {
		return nil, err
	}
	if starts && !known {
		a.waitFor(ctx, sequence) // whose it is, is decided by the log
	}
	return &schemas.Receipt{Sequence: sequence}, nil
}

// ownerOf returns the owner of a job, "" if it has none in particular; known is false
// for a job that is neither in memory nor in the event log. The log decides where memory
// has dropped the job or its request.
func (a *Advisor) ownerOf(ctx context.Context, id string) (user string, known bool, err error) {
	a.know(ctx, id)
	user, known, certain := a.owner(id)
	if certain {
		return user, true, nil
	}
	recorded, inLog, err := a.ownerInLog(ctx, id)
	if err != nil || inLog {
		return recorded, inLog, err
	}
	return user, known, nil
}

// owner returns the owner of a job in memory; certain is false where its request may
// have been dropped, which names the owner before the start does.
func (a *Advisor) owner(id string) (user string, known, certain bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.job(id)
	switch {
	case j == nil:
		return "", false, false
	case j.Submitted != nil:
		return j.Submitted.Request.User, true, true
	}
	return j.User, true, j.pending()
}

// ownerInLog returns the owner of a job as the event log has it.
func (a *Advisor) ownerInLog(ctx context.Context, id string) (user string, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	submitted, err := a.submission(ctx, id)
	if err != nil {
		return "", false, err
	}
	if submitted != nil {
		return submitted.Request.User, true, nil
	}
	started, err := a.bus.Last(ctx, schemas.StreamJob, schemas.JobSubject(id, schemas.EventStarted))
	if err != nil {
		return "", false, a.logUnavailable(id, err)
	}
	for _, r := range started {
		if e, ok := r.Event.(*schemas.Started); ok {
			return e.User, true, nil
		}
	}
	return "", false, nil
}

// forbid refuses what a person may not do, counts it and says it in the log.
func (a *Advisor) forbid(person, field, format string, args ...any) error {
	e := &schemas.Error{
		Code:    schemas.CodeForbidden,
		Field:   field,
		Message: fmt.Sprintf(format, args...),
	}
	a.metrics.forbidden.Inc()
	a.log.Warn("person may not", "person", person, "reason", e.Message)
	return e
}

func possessive(owner string) string {
	if owner == "" {
		return "nobody's in particular, and the operator's to change"
	}
	return owner + "'s"
}

// jobOf is the job that an event of a job tells of.
func jobOf(e schemas.Event) string {
	_, rest, _ := strings.Cut(e.Subject(), ".")
	id, _, _ := strings.Cut(rest, ".")
	return id
}
