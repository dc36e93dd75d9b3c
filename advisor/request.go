package advisor

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
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
	return a.bus.Serve(ctx, bus.Service{Name: "courier-advisor", Version: a.o.Version, Description: "answers job requests and watches running jobs",
		Ready: func() { close(a.answering) }, Endpoints: endpoints})
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
// same request again gets the first advice; another with the same id, conflict.
func (a *Advisor) submit(ctx context.Context, q *schemas.JobRequest) (any, error) {
	request := q.WithDefaults()
	if request.JobID == "" {
		request.JobID = "job-" + strings.ToLower(rand.Text()[:12])
	} else if first, err := a.submittedBefore(&request); first != nil || err != nil {
		return first, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	asked := request
	a.settle(&request)
	advice, err := a.decide(ctx, request)
	if err != nil {
		return nil, err
	}
	e := &schemas.Submitted{Request: request, Advice: *advice}
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: request.JobID + "/submitted", At: advice.At}, JobID: request.JobID}
	e.Advice.EventID = e.EventID
	written, err := schemas.Marshal(&e.Advice)
	if err != nil {
		return nil, err
	}
	e.Written = written
	sequence, fresh, err := a.bus.PublishOnce(ctx, e)
	if err != nil {
		return nil, err
	}
	if !fresh { // another advisor recorded the same id first
		a.waitFor(ctx, sequence)
		return a.submittedBefore(&asked)
	}
	a.mu.Lock()
	a.cluster.Apply(e, sequence, e.At)
	a.mu.Unlock()
	return e.Written, nil
}

// decide answers a request that is going to be recorded.
func (a *Advisor) decide(ctx context.Context, q schemas.JobRequest) (*schemas.Advice, error) {
	if a.guards() {
		return a.admit(ctx, q)
	}
	return a.answer(q), nil
}

// submittedBefore returns the advice that the same request got, nil if its id is
// new, or a conflict if that id stands for something else.
func (a *Advisor) submittedBefore(q *schemas.JobRequest) (*schemas.Advice, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.jobs[q.JobID]
	if j == nil {
		return nil, nil
	}
	if j.Submitted == nil {
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: "job " + q.JobID + " was started without a request; take another id"}
	}
	first := j.Submitted.Request
	if q.Promise == "" { // the cluster may have been set otherwise then
		first.Promise = ""
	}
	if !sameBody(&first, q) {
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: "job " + q.JobID + " was submitted with another body; take another id"}
	}
	return &j.Submitted.Advice, nil
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
	known := a.cluster.jobs[id] != nil
	a.mu.RUnlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ticketPatience)
	defer cancel()
	if last, err := a.bus.LastSequence(ctx, schemas.StreamJob); err == nil {
		a.waitFor(ctx, last)
	}
}

func (a *Advisor) status(ctx context.Context, q *schemas.JobStatusRequest) (any, error) {
	a.know(ctx, q.JobID)
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.jobs[q.JobID]
	if j == nil {
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Field: "id", Message: "no job " + q.JobID}
	}
	return a.statusOf(j), nil
}

func (a *Advisor) list(_ context.Context, q *schemas.JobListRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.list(q, a.statusOf)
}

// cancel records that a job is to end; its runner listens for the event.
func (a *Advisor) cancel(ctx context.Context, q *schemas.JobCancelRequest) (any, error) {
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: q.Reason}
	a.know(ctx, q.JobID)
	a.mu.RLock()
	j := a.cluster.jobs[q.JobID]
	var over bool
	var state schemas.State
	if j != nil {
		over, state = j.over(), j.State
		e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.EndedID(j.ID, j.Run, schemas.EventCancelled), At: time.Now().UTC()}, JobID: j.ID, Run: j.Run}
		e.Setting, e.EpochsDone = j.Setting, j.EpochsDone
	}
	a.mu.RUnlock()
	if over && state != schemas.StateCancelled {
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: fmt.Sprintf("job %s has ended already: %s", q.JobID, state)}
	}
	if j != nil && !over {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		sequence, err := a.bus.Publish(ctx, e)
		if err != nil {
			return nil, err
		}
		a.waitFor(ctx, sequence)
	}
	return a.status(ctx, &schemas.JobStatusRequest{JobID: q.JobID})
}
