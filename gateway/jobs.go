package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"courier/bus"
	"courier/schemas"
)

// predict is POST /api/v1/predict.
func (g *Gateway) predict(w http.ResponseWriter, r *http.Request) error {
	body, err := g.readBody(w, r)
	if err != nil {
		return err
	}
	return g.forward(w, r, schemas.SubjectJobPredict, body)
}

// listJobs is GET /api/v1/jobs.
func (g *Gateway) listJobs(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "state", "search", "limit", "after")
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
	request := schemas.JobListRequest{
		State:  schemas.State(query.Get("state")),
		Search: query.Get("search"),
		Limit:  limit,
		After:  query.Get("after"),
	}
	return g.forward(w, r, request.Subject(), &request)
}

// job is GET /api/v1/jobs/{id}.
func (g *Gateway) job(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
	return g.forward(w, r, request.Subject(), &request)
}

// cancelJob is DELETE /api/v1/jobs/{id}. The advisor records a cancellation like a submission.
func (g *Gateway) cancelJob(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "reason")
	if err != nil {
		return err
	}
	request := schemas.JobCancelRequest{JobID: r.PathValue("id"), Reason: query.Get("reason")}
	var status json.RawMessage
	err = g.requestFor(r.Context(), request.Subject(), &request, &status, submitTimeout)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, status)
}

// forward sends a request to a service and responds with the unchanged reply.
func (g *Gateway) forward(
	w http.ResponseWriter, r *http.Request, subject string, request any,
) error {
	var reply json.RawMessage
	if err := g.request(r.Context(), subject, request, &reply); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, reply)
}

// advice is GET /api/v1/jobs/{id}/advice: the last advice event of the job, or the advice that
// answered its submission, read from the event log.
func (g *Gateway) advice(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	advice, err := g.lastAdvice(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, advice)
}

// lastAdvice returns the last advice of a job from the event log. The error has CodeNotFound if
// there is none, and CodeUnavailable if the log cannot be read.
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

	// JOB contains the answer to the request and, in old logs, advice. ADVICE is newer.
	err := read(schemas.StreamJob, schemas.EventSubmitted, schemas.EventAdvice)
	if err == nil {
		err = read(schemas.StreamAdvice, schemas.EventAdvice)
	}
	switch {
	case err != nil:
		return nil, unavailable("the event log cannot be read; retry later")
	case last == nil:
		return nil, &schemas.Error{
			Code:    schemas.CodeNotFound,
			Field:   "id",
			Message: "no advice is recorded for this job",
		}
	}
	return last, nil
}
