package advisor

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"courier/schemas"
)

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
	advice, err := a.answerOrAdmit(ctx, request)
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

// answerOrAdmit answers a request that will be recorded.
func (a *Advisor) answerOrAdmit(ctx context.Context, q schemas.JobRequest) (*schemas.Advice, error) {
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
func (a *Advisor) submittedBefore(ctx context.Context, q *schemas.JobRequest) (*schemas.Advice, error) {
	a.mu.RLock()
	j := a.cluster.Job(q.JobID)
	if j != nil && j.Answer != nil {
		defer a.mu.RUnlock()
		return sameRequest(j.Request, j.Answer, q)
	}
	a.mu.RUnlock()
	known := j != nil
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
func (a *Advisor) firstAdvice(ctx context.Context, q *schemas.JobRequest) (*schemas.Advice, error) {
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

// sameRequest returns the answer to a recorded request if another request is identical, otherwise a
// conflict. Where the first request left out user and nodes, a runner may name its user and the nodes of the
// answer.
func sameRequest(
	recorded *schemas.JobRequest, answer *schemas.Advice, q *schemas.JobRequest,
) (*schemas.Advice, error) {
	first := *recorded
	first.User = cmp.Or(first.User, q.User)
	if len(first.Nodes) == 0 && len(q.Nodes) > 0 {
		if len(answer.Nodes) > 0 && !slices.Equal(answer.Nodes, q.Nodes) {
			return nil, conflict(q.JobID, "was answered for "+strings.Join(answer.Nodes, ", "))
		}
		first.Nodes, first.NewNodes = q.Nodes, q.NewNodes
	}
	if !sameBody(&first, q) {
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
