package advisor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// submitFor is submit of a person: the job is his.
func (a *Advisor) submitFor(ctx context.Context, person string, q *schemas.JobRequest) (any, error) {
	if q.User == "" {
		q.User = person
	}
	if q.User != person {
		return nil, a.forbid(person, "user", "%s cannot submit a job for %q", person, q.User)
	}
	return a.submit(ctx, q)
}

// cancelFor is cancel by a person, of a job of his own.
func (a *Advisor) cancelFor(ctx context.Context, person string, q *schemas.JobCancelRequest) (any, error) {
	a.know(ctx, q.JobID)
	if owner, known := a.owner(q.JobID); known && owner != person {
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
	a.know(ctx, id)
	owner, known := a.owner(id)
	if !known { // it may have ended long ago
		var err error
		if owner, known, err = a.ownerInLog(ctx, id); err != nil {
			return nil, err
		}
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
	return &schemas.Told{Sequence: sequence}, nil
}

// owner is whose job it is, "" if nobody said; known is false of a job that is not
// in the log.
func (a *Advisor) owner(id string) (user string, known bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.jobs[id]
	if j == nil {
		return "", false
	}
	if j.Submitted != nil {
		return j.Submitted.Request.User, true
	}
	return j.User, true
}

// ownerInLog is owner of a job that is not in memory any more: whose it is says
// the log, for as long as it keeps it.
func (a *Advisor) ownerInLog(ctx context.Context, id string) (user string, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ticketPatience)
	defer cancel()
	submitted := false
	o := bus.FollowOptions{Stream: schemas.StreamJob, LastPerSubject: true, Subjects: []string{schemas.JobSubject(id, schemas.EventSubmitted), schemas.JobSubject(id, schemas.EventStarted)}}
	err = a.bus.Read(ctx, o, func(r bus.Record) error {
		known = true
		switch e := r.Event.(type) {
		case *schemas.Submitted:
			user, submitted = e.Request.User, true
		case *schemas.Started:
			if !submitted {
				user = e.User
			}
		}
		return nil
	})
	if err != nil {
		return "", false, &schemas.Error{Code: schemas.CodeUnavailable, Message: "the event log does not answer"}
	}
	return user, known, nil
}

// forbid refuses what a person may not do, counts it and says it in the log.
func (a *Advisor) forbid(person, field, format string, args ...any) error {
	e := &schemas.Error{Code: schemas.CodeForbidden, Field: field, Message: fmt.Sprintf(format, args...)}
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

// hear takes a heartbeat. One that a person sent of another's job is not heard.
func (a *Advisor) hear(person string, e schemas.Event) {
	alive := e.(*schemas.Alive)
	if owner, known := a.owner(alive.JobID); !known || person != "" && person != owner {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.cluster.jobs[alive.JobID]; j != nil && alive.Run == j.Run { // it may be forgotten by now
		j.heard = time.Now()
	}
}
