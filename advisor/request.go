package advisor

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// serve answers requests once the log was read to its end.
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
		bus.Handle(schemas.SubjectJobScore, a.tellScore),
		bus.HandlePerson(schemas.SubjectJobSubmit, a.submitFor),
		bus.HandlePerson(schemas.SubjectJobCancel, a.cancelFor),
	}
	for _, event := range schemas.PersonalEvents() {
		endpoints = append(endpoints, bus.HandleEvent(schemas.JobSubject("*", event), a.tellFor))
	}
	return a.bus.Serve(ctx, bus.Service{
		Name:        "courier-advisor",
		Version:     a.o.Version,
		Description: "answers job requests and watches running jobs",
		Ready:       func() { close(a.answering) },
		Endpoints:   endpoints,
	})
}

// predict answers a request without recording it: with what the policy would say.
func (a *Advisor) predict(_ context.Context, q *schemas.JobRequest) (any, error) {
	request := q.WithDefaults()
	a.settle(&request)
	advice := a.answer(request)
	if a.guards() {
		judge(advice, a.o.Admission, a.waits())
	}
	return advice, nil
}

// settle fills in what a request leaves to the cluster.
func (a *Advisor) settle(q *schemas.JobRequest) {
	if q.Promise == "" && a.o.Promise == schemas.PromiseMean {
		q.Promise = a.o.Promise
	}
}

// waits is how many jobs wait in the queue.
func (a *Advisor) waits() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.waits()
}

func (a *Advisor) answer(q schemas.JobRequest) *schemas.Advice {
	now := time.Now().UTC()
	a.mu.RLock()
	question, known := a.cluster.Ask(q, now), a.applied
	a.mu.RUnlock()
	advice := Decide(question, *a.regressors.Load(), now)
	advice.CauseSequence = known
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	return advice
}

// submit records the request with its advice, then answers with the advice. The
// same request again gets the first advice; another with the same ID, conflict.
func (a *Advisor) submit(ctx context.Context, q *schemas.JobRequest) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	request := q.WithDefaults()
	if request.JobID == "" {
		request.JobID = schemas.NewJobID()
	} else if first, err := a.submittedBefore(ctx, &request); first != nil || err != nil {
		return first, err
	}
	asked := request
	a.settle(&request)
	advice, err := a.decide(ctx, request)
	if err != nil {
		return nil, err
	}
	e, err := submittedEvent(request, advice)
	if err != nil {
		return nil, err
	}
	sequence, fresh, err := a.bus.PublishOnce(ctx, e)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return a.firstAdvice(ctx, &asked)
	}
	a.mu.Lock()
	a.cluster.Apply(e, sequence, e.At)
	a.mu.Unlock()
	return e.EncodedAdvice, nil
}

// submittedEvent returns the event that records a request with its advice. The advice
// is encoded once, for the event and for the reply.
func submittedEvent(q schemas.JobRequest, advice *schemas.Advice) (*schemas.Submitted, error) {
	e := &schemas.Submitted{Request: q, Advice: *advice}
	stamp := schemas.Stamp{EventID: q.JobID + "/submitted", At: advice.At}
	e.JobStamp = schemas.JobStamp{Stamp: stamp, JobID: q.JobID}
	e.Advice.EventID = e.EventID
	written, err := schemas.Marshal(&e.Advice)
	e.EncodedAdvice = written
	return e, err
}

// decide answers a request that is going to be recorded.
func (a *Advisor) decide(ctx context.Context, q schemas.JobRequest) (*schemas.Advice, error) {
	if a.guards() {
		return a.admit(ctx, q)
	}
	return a.answer(q), nil
}

// submittedBefore returns the advice that the same request got, nil if its ID is new
// as far as this advisor knows, or a conflict if the ID belongs to another request.
//
// Memory answers for a job that has not ended. It keeps less of a job that has, and
// nothing of an old one: there the event log answers. An ID that memory does not know
// needs no look at the log, because PublishOnce refuses it if it is recorded; only an
// admission must not be granted to it before that.
func (a *Advisor) submittedBefore(
	ctx context.Context, q *schemas.JobRequest,
) (*schemas.Advice, error) {
	a.mu.RLock()
	j, known := a.cluster.jobs[q.JobID], a.cluster.knows(q.JobID)
	var submitted *schemas.Submitted
	if j != nil && j.pending() {
		submitted = j.Submitted
	}
	a.mu.RUnlock()
	if submitted != nil {
		return sameRequest(submitted, q)
	}
	if !known && !a.guards() {
		return nil, nil
	}
	submitted, err := a.submission(ctx, q.JobID)
	switch {
	case err != nil:
		return nil, err
	case submitted != nil:
		return sameRequest(submitted, q)
	case known:
		return nil, conflict(q.JobID, "was started without a request, or its request is dropped")
	}
	return nil, nil
}

// firstAdvice returns the recorded advice of a request whose ID is in the event log, or
// a conflict if the ID belongs to another request.
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
			Message: "job " + q.JobID + " is recorded but its record cannot be read; retry",
		}
	}
	return sameRequest(recorded, q)
}

// submission returns the recorded submission of a job; nil if the event log has none.
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

// logUnavailable logs why the event log could not be read for a job, and returns the
// error to answer with.
func (a *Advisor) logUnavailable(id string, err error) error {
	a.log.Warn("event log not read", "job_id", id, "error", err)
	return &schemas.Error{
		Code: schemas.CodeUnavailable, Message: "the event log does not answer; retry in a moment",
	}
}

// sameRequest returns the advice of a submission if the request is the same, else a
// conflict.
func sameRequest(s *schemas.Submitted, q *schemas.JobRequest) (*schemas.Advice, error) {
	first := s.Request
	if q.Promise == "" { // the cluster's default may have been another one then
		first.Promise = ""
	}
	if !sameBody(&first, q) {
		return nil, conflict(q.JobID, "was submitted with another body")
	}
	return &s.Advice, nil
}

func conflict(id, reason string) error {
	return &schemas.Error{
		Code: schemas.CodeConflict, Field: "id",
		Message: "job " + id + " " + reason + "; use another id",
	}
}

// sameBody compares requests as they are written, so that one that was read back
// from the log equals itself.
func sameBody(a, b *schemas.JobRequest) bool {
	x, errX := schemas.Marshal(a)
	y, errY := schemas.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// know returns when the log was read far enough to know a job, if there is one:
// another advisor may have recorded it a moment ago.
func (a *Advisor) know(ctx context.Context, id string) {
	a.mu.RLock()
	known := a.cluster.knows(id)
	a.mu.RUnlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	if last, err := a.bus.LastSequence(ctx, schemas.StreamJob); err == nil {
		a.waitFor(ctx, last)
	}
}

func (a *Advisor) status(ctx context.Context, q *schemas.JobStatusRequest) (any, error) {
	a.know(ctx, q.JobID)
	now := time.Now().UTC()
	a.mu.RLock()
	j := a.cluster.job(q.JobID)
	if j != nil {
		d := a.cluster.draft(j, now)
		a.mu.RUnlock()
		return a.complete(&d, now), nil
	}
	a.mu.RUnlock()
	j, err := a.recorded(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if j == nil {
		return nil, noJob(q.JobID)
	}
	return j.status(), nil
}

func noJob(id string) error {
	return &schemas.Error{Code: schemas.CodeNotFound, Field: "id", Message: "no job " + id}
}

// job returns a copy of a job: from memory, else from the event log. The error is
// not_found for an ID that neither has.
func (a *Advisor) job(ctx context.Context, id string) (*Job, error) {
	a.know(ctx, id)
	a.mu.RLock()
	if j := a.cluster.job(id); j != nil {
		found := *j
		a.mu.RUnlock()
		return &found, nil
	}
	a.mu.RUnlock()
	j, err := a.recorded(ctx, id)
	if err == nil && j == nil {
		err = noJob(id)
	}
	return j, err
}

// recorded returns a job that memory no longer has, from the last event of each kind in
// the event log; nil if the log has none.
func (a *Advisor) recorded(ctx context.Context, id string) (*Job, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	records, err := a.bus.Last(ctx, schemas.StreamJob, schemas.JobSubject(id, "*"))
	if err != nil {
		return nil, a.logUnavailable(id, err)
	}
	c := NewCluster()
	for _, r := range records {
		c.Apply(r.Event, r.Sequence, r.StoredAt)
	}
	return c.job(id), nil
}

// list returns a page of jobs. What is predicted of those that run is decided after the
// state was read, so that a long page delays nothing else.
func (a *Advisor) list(_ context.Context, q *schemas.JobListRequest) (any, error) {
	now := time.Now().UTC()
	a.mu.RLock()
	drafts, next, err := a.cluster.list(q, now)
	a.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	page := schemas.JobList{Jobs: make([]schemas.JobStatus, 0, len(drafts)), Next: next}
	for i := range drafts {
		page.Jobs = append(page.Jobs, a.complete(&drafts[i], now))
	}
	return page, nil
}

// cancel records that a job is to end; its runner listens for the event.
func (a *Advisor) cancel(ctx context.Context, q *schemas.JobCancelRequest) (any, error) {
	j, err := a.job(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if j.over() && j.State != schemas.StateCancelled {
		return nil, &schemas.Error{
			Code: schemas.CodeConflict, Field: "id",
			Message: fmt.Sprintf("job %s has ended already: %s", q.JobID, j.State),
		}
	}
	if !j.over() {
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

func cancelledEvent(j *Job, reason string, now time.Time) *schemas.Ended {
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: reason}
	id := schemas.EndedID(j.ID, j.Run, schemas.EventCancelled)
	stamp := schemas.Stamp{EventID: id, At: now}
	e.JobStamp = schemas.JobStamp{Stamp: stamp, JobID: j.ID, Run: j.Run}
	e.Setting, e.EpochsDone = j.Setting, j.EpochsDone
	return e
}
