package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"courier/bus"
	"courier/schemas"
)

// predict hands a what-if question on.
func (g *Gateway) predict(w http.ResponseWriter, r *http.Request) error {
	body, err := g.readBody(w, r)
	if err != nil {
		return err
	}
	return g.relay(w, r, schemas.SubjectJobPredict, body)
}

// listJobs asks for a page of jobs.
func (g *Gateway) listJobs(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "state", "limit", "after")
	if err != nil {
		return err
	}
	limit, err := readCount(query, "limit")
	if err != nil {
		return err
	}
	if query.Has("limit") && limit == 0 {
		return schemas.Invalid("limit", "0 is not between 1 and %d", schemas.MaxPage)
	}
	request := schemas.JobListRequest{State: schemas.State(query.Get("state")), Limit: limit, After: query.Get("after")}
	return g.relay(w, r, request.Subject(), &request)
}

// job asks for one job.
func (g *Gateway) job(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
	return g.relay(w, r, request.Subject(), &request)
}

// cancelJob asks the advisor to end a job.
func (g *Gateway) cancelJob(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "reason")
	if err != nil {
		return err
	}
	request := schemas.JobCancelRequest{JobID: r.PathValue("id"), Reason: query.Get("reason")}
	var status json.RawMessage
	if err := g.requestFor(r.Context(), request.Subject(), &request, &status, submitTimeout); err != nil {
		return err // the advisor records a cancellation as it records a submission
	}
	return writeJSON(w, http.StatusOK, status)
}

// relay asks a service and answers 200 with its unchanged reply.
func (g *Gateway) relay(w http.ResponseWriter, r *http.Request, subject string, request any) error {
	var reply json.RawMessage
	if err := g.request(r.Context(), subject, request, &reply); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, reply)
}

// advice answers with the latest advice of a job, read from the log: its last
// advice event, or the advice that answered its submission.
func (g *Gateway) advice(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	// Checked here because the ID becomes a filter, in which "*" would match every job.
	request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
	if err := request.Validate(); err != nil {
		return err
	}
	advice, err := g.lastAdvice(r.Context(), request.JobID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, advice)
}

// lastAdvice reads the log of one job. An *Error with CodeNotFound means that
// there is none, one with CodeUnavailable that the log does not answer.
func (g *Gateway) lastAdvice(ctx context.Context, id string) (*schemas.Advice, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var last *schemas.Advice
	read := func(stream string, events ...string) error {
		o := bus.FollowOptions{Stream: stream, LastPerSubject: true}
		for _, event := range events {
			o.Subjects = append(o.Subjects, schemas.JobSubject(id, event))
		}
		return g.bus.Read(ctx, o, func(r bus.Record) error {
			switch e := r.Event.(type) {
			case *schemas.Advice:
				last = e
			case *schemas.Submitted:
				last = &e.Advice
			}
			return nil
		})
	}
	// JOB holds the answer to the request, and in old logs the advice; what ADVICE holds is newer.
	err := read(schemas.StreamJob, schemas.EventSubmitted, schemas.EventAdvice)
	if err == nil {
		err = read(schemas.StreamAdvice, schemas.EventAdvice)
	}
	switch {
	case err != nil:
		return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "the event log does not answer"}
	case last == nil:
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Field: "id", Message: "no advice is recorded for this job"}
	}
	return last, nil
}
