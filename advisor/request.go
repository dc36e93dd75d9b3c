package advisor

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/bus"
	"courier/schemas"
)

// serve answers requests after the replay.
func (a *Advisor) serve(ctx context.Context) error {
	select {
	case <-a.caughtUp:
	case <-ctx.Done():
		return nil
	}
	endpoints := []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, a.submit),
		bus.Handle(schemas.SubjectJobPredict, a.predict),
		bus.Handle(schemas.SubjectJobStatus, a.status),
		bus.Handle(schemas.SubjectJobList, a.list),
		bus.Handle(schemas.SubjectJobCancel, a.cancel),
		bus.Handle(schemas.SubjectJobScore, a.scoreReply),
		bus.HandlePerson(schemas.SubjectJobSubmit, a.personSubmit),
		bus.HandlePerson(schemas.SubjectJobCancel, a.personCancel),
	}
	for _, event := range schemas.PersonalEvents() {
		subject := schemas.JobSubject("*", event)
		endpoints = append(endpoints, bus.HandleEvent(subject, a.personEvent))
	}
	return a.bus.Serve(ctx, bus.Service{
		Name:        "courier-advisor",
		Version:     a.o.Version,
		Description: "answers job requests and watches running jobs",
		Ready:       func() { close(a.answering) },
		Endpoints:   endpoints,
	})
}

// predict answers a request without recording it, including the verdict of the policy.
func (a *Advisor) predict(_ context.Context, q *schemas.JobRequest) (any, error) {
	request := q.WithDefaults()
	if err := a.checkNodes(&request); err != nil {
		return nil, err
	}
	if a.hasAdmissionPolicy() {
		return a.answerUnderPolicy(request), nil
	}
	return a.answer(request), nil
}

// checkNodes returns an error that names a node of a request which is not in the cluster. A cluster
// without collectors knows no nodes and accepts all.
func (a *Advisor) checkNodes(q *schemas.JobRequest) error {
	if q.NewNodes {
		return nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, name := range q.Nodes {
		if a.cluster.Node(name) != nil {
			continue
		}
		known := a.cluster.KnownNodes()
		if len(known) == 0 {
			return nil
		}
		return schemas.Invalid("nodes", "no collector and no job has reported node %q; %s",
			name, listNodes(known))
	}
	return nil
}

// listNodes lists the first few nodes of the cluster.
func listNodes(names []string) string {
	const some = 5
	text := "known nodes: " + strings.Join(names[:min(len(names), some)], ", ")
	if len(names) > some {
		text += fmt.Sprintf(" and %d others", len(names)-some)
	}
	return text
}

// queueLength returns the number of queued jobs.
func (a *Advisor) queueLength() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.cluster.Queue())
}

// answer decides a request with the current state and regressors.
func (a *Advisor) answer(q schemas.JobRequest) *schemas.Advice {
	now := time.Now().UTC()
	a.mu.RLock()
	question, known := decide.Ask(a.cluster, q, now), a.applied
	a.mu.RUnlock()
	advice := decide.Decide(question, *a.regressors.Load(), now)
	advice.CauseSequence = known
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	return advice
}

// submit records the request with its advice, and then returns the advice. If the same request is
// repeated, it returns the first advice; for a different request with the same ID it returns a
// conflict.
func (a *Advisor) submit(ctx context.Context, q *schemas.JobRequest) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	request := q.WithDefaults()
	if request.JobID == "" {
		request.JobID = schemas.NewJobID()
	} else if first, err := a.submittedBefore(ctx, &request); first != nil || err != nil {
		return first, err
	}
	if err := a.checkNodes(&request); err != nil {
		return nil, err
	}
	advice, err := a.decide(ctx, request)
	if err != nil {
		return nil, err
	}
	e := submittedEvent(request, advice)
	sequence, fresh, err := a.bus.PublishOnce(ctx, e)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return a.firstAdvice(ctx, &request)
	}
	a.mu.Lock()
	a.cluster.Apply(e, sequence, e.At)
	a.mu.Unlock()
	return &e.Advice, nil
}

// submittedEvent returns the event that records a request with its advice.
func submittedEvent(q schemas.JobRequest, advice *schemas.Advice) *schemas.Submitted {
	e := &schemas.Submitted{Request: q, Advice: *advice}
	stamp := schemas.Stamp{EventID: q.JobID + "/submitted", At: advice.At}
	e.JobStamp = schemas.JobStamp{Stamp: stamp, JobID: q.JobID}
	e.Advice.EventID = e.EventID
	return e
}

// decide answers a request that will be recorded.
func (a *Advisor) decide(ctx context.Context, q schemas.JobRequest) (*schemas.Advice, error) {
	if a.hasAdmissionPolicy() {
		return a.admit(ctx, q)
	}
	return a.answer(q), nil
}

// submittedBefore returns the advice of an identical earlier request. It returns nil if the ID is
// new as far as this advisor knows, or a conflict if the ID belongs to a different request.
//
// A job that has not ended is in memory with its answer. Memory keeps only a part of an ended job and
// nothing of an old job, so the event log is read for these. For an unknown ID the log is not read,
// because PublishOnce refuses an ID that is recorded. With an admission policy the log is read
// nevertheless, so that no admission is granted to a recorded ID.
func (a *Advisor) submittedBefore(
	ctx context.Context, q *schemas.JobRequest,
) (*schemas.Advice, error) {
	a.mu.RLock()
	j, known := a.cluster.Live(q.JobID), a.cluster.Knows(q.JobID)
	if j != nil && j.Answer != nil {
		defer a.mu.RUnlock()
		return sameRequest(j.Request, j.Answer, q)
	}
	a.mu.RUnlock()
	if !known && !a.hasAdmissionPolicy() {
		return nil, nil
	}
	submitted, err := a.submission(ctx, q.JobID)
	switch {
	case err != nil:
		return nil, err
	case submitted != nil:
		return sameRequest(&submitted.Request, &submitted.Advice, q)
	case known:
		return nil, conflict(q.JobID, "was started without a request, or its request is dropped")
	}
	return nil, nil
}

// firstAdvice returns the recorded advice of a request whose ID is in the event log, or a conflict
// if the ID belongs to a different request.
func (a *Advisor) firstAdvice(
	ctx context.Context, q *schemas.JobRequest,
) (*schemas.Advice, error) {
	recorded, err := a.submission(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		return nil, &schemas.Error{
			Code:    schemas.CodeUnavailable,
			Message: "job " + q.JobID + " is recorded but cannot be read; retry in a moment",
		}
	}
	return sameRequest(&recorded.Request, &recorded.Advice, q)
}

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

// sameRequest returns the answer to a recorded request if another request is identical, otherwise a
// conflict.
func sameRequest(
	recorded *schemas.JobRequest, answer *schemas.Advice, q *schemas.JobRequest,
) (*schemas.Advice, error) {
	if !sameBody(recorded, q) {
		return nil, conflict(q.JobID, "was submitted with another body")
	}
	return answer, nil
}

func conflict(id, reason string) error {
	return &schemas.Error{
		Code: schemas.CodeConflict, Field: "id",
		Message: "job " + id + " " + reason + "; use another id",
	}
}

// sameBody compares the JSON of two requests, so that a request read from the log equals itself.
func sameBody(a, b *schemas.JobRequest) bool {
	x, errX := schemas.Marshal(a)
	y, errY := schemas.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// cancel publishes the end of a job; its runner listens for that event.
func (a *Advisor) cancel(ctx context.Context, q *schemas.JobCancelRequest) (any, error) {
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
		sequence, err := a.bus.Publish(ctx, cancelledEvent(j, q.Reason, time.Now().UTC()))
		if err != nil {
			return nil, err
		}
		a.waitFor(ctx, sequence)
	}
	return a.status(ctx, &schemas.JobStatusRequest{JobID: q.JobID})
}

func cancelledEvent(j *cluster.Job, reason string, now time.Time) *schemas.Ended {
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: reason}
	id := schemas.EndedID(j.ID, j.Run, schemas.EventCancelled)
	stamp := schemas.Stamp{EventID: id, At: now}
	e.JobStamp = schemas.JobStamp{Stamp: stamp, JobID: j.ID, Run: j.Run}
	e.Setting, e.EpochsDone = j.Setting, j.EpochsDone
	return e
}

// personSubmit is submit for a person, who becomes the owner of the job.
func (a *Advisor) personSubmit(
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

// personCancel is cancel for a person, who must own the job.
func (a *Advisor) personCancel(
	ctx context.Context, person string, q *schemas.JobCancelRequest,
) (any, error) {
	owner, known, err := a.ownerOf(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if known && owner != person {
		return nil, a.forbid(person, "id", "job %s %s", q.JobID, ownership(owner))
	}
	return a.cancel(ctx, q)
}

// personEvent records an event from a person about their own job. A job that was started without a
// submission belongs to the person who started it.
func (a *Advisor) personEvent(ctx context.Context, person string, e schemas.Event) (any, error) {
	id := jobOf(e)
	if !strings.HasPrefix(e.ID(), id+"/") {
		// The event would suppress an event of another job as a duplicate.
		return nil, schemas.Invalid("event_id", "%.80q is not an event ID of job %s", e.ID(), id)
	}
	owner, known, err := a.ownerOf(ctx, id)
	if err != nil {
		return nil, err
	}
	started, starts := e.(*schemas.Started)
	switch {
	case known && owner != person:
		return nil, a.forbid(person, "job_id", "job %s %s", id, ownership(owner))
	case !known && !starts:
		return nil, a.forbid(person, "job_id", "job %s was neither submitted nor started", id)
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
		a.waitFor(ctx, sequence) // the first start event in the log names the owner
	}
	return &schemas.Receipt{Sequence: sequence}, nil
}

// ownerOf returns the owner of a job, "" if it has none. known is false for a job that is neither
// in memory nor in the event log. The log is read if memory has dropped the job or its request.
func (a *Advisor) ownerOf(ctx context.Context, id string) (user string, known bool, err error) {
	a.waitUntilKnown(ctx, id)
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

// owner returns the owner of a job in memory. certain is false if the request of the job may have
// been dropped: its user takes precedence over the user who started the job.
func (a *Advisor) owner(id string) (user string, known, certain bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.Job(id)
	switch {
	case j == nil:
		return "", false, false
	case j.Request != nil:
		return j.Request.User, true, true
	}
	return j.User, true, j.IsPending()
}

// ownerInLog returns the owner of a job according to the event log.
func (a *Advisor) ownerInLog(ctx context.Context, id string) (user string, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
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

// forbid counts and logs an action that a person may not take, and returns the error.
func (a *Advisor) forbid(person, field, format string, args ...any) error {
	e := &schemas.Error{
		Code:    schemas.CodeForbidden,
		Field:   field,
		Message: fmt.Sprintf(format, args...),
	}
	a.metrics.forbidden.Inc()
	a.log.Warn("request forbidden", "person", person, "reason", e.Message)
	return e
}

// ownership describes the owner of a job in an error.
func ownership(owner string) string {
	if owner == "" {
		return "has no owner; only an operator may change it"
	}
	return "belongs to " + owner
}

// jobOf returns the job ID in the subject of an event.
func jobOf(e schemas.Event) string {
	_, rest, _ := strings.Cut(e.Subject(), ".")
	id, _, _ := strings.Cut(rest, ".")
	return id
}
