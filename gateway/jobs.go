package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"courier/bus"
	"courier/receipt"
	"courier/schemas"
)

// predict is POST /api/v1/predict.
func (g *Gateway) predict(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, g.options.BodyTimeout)
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
		State:  schemas.StateSelection(query.Get("state")),
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
	return respond(w, r, reply)
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
	return respond(w, r, advice)
}

// lastAdvice returns the last advice of a job from the event log. The error has CodeNotFound if
// there is none, and CodeUnavailable if the log cannot be read.
func (g *Gateway) lastAdvice(ctx context.Context, id string) (*schemas.Advice, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var last *schemas.Advice
	read := func(stream, event string) error {
		o := bus.FollowOptions{
			Stream:         stream,
			Subjects:       []string{schemas.JobSubject(id, event)},
			LastPerSubject: true,
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

	err := read(schemas.StreamJob, schemas.EventSubmitted)
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

// historyTimeout is the timeout for reading all events of a job.
const historyTimeout = 10 * time.Second

// ReadableReceipt is the response of GET /api/v1/jobs/{id}/receipt: figures, and the same as text.
type ReadableReceipt struct {
	*receipt.JobReceipt
	Lines []receipt.Line `json:"lines"`
}

// jobHistory is GET /api/v1/jobs/{id}/history.
func (g *Gateway) jobHistory(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), historyTimeout)
	defer cancel()
	id, err := jobID(r)
	if err != nil {
		return err
	}
	h, err := receipt.ReadHistory(ctx, g.bus, id)
	if err != nil {
		return readFailed(err)
	}
	return respond(w, r, h)
}

// jobReceipt is GET /api/v1/jobs/{id}/receipt.
func (g *Gateway) jobReceipt(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), historyTimeout)
	defer cancel()
	id, err := jobID(r)
	if err != nil {
		return err
	}
	found, err := receipt.Read(ctx, g.bus, id)
	if err != nil {
		return readFailed(err)
	}
	return respond(w, r, ReadableReceipt{JobReceipt: found, Lines: found.Lines()})
}

// jobID returns the valid job ID of a path. The ID becomes a filter, in which "*" would match every
// job.
func jobID(r *http.Request) (string, error) {
	if _, err := readQuery(r); err != nil {
		return "", err
	}
	request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
	return request.JobID, request.Validate()
}

// readFailed returns an error about a job, or that the event log cannot be read.
func readFailed(err error) error {
	var known *schemas.Error
	if errors.As(err, &known) {
		return err
	}
	return unavailable("the event log cannot be read; retry later")
}

// score is GET /api/v1/score.
func (g *Gateway) score(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	request := schemas.ScoreRequest{}
	return g.forward(w, r, request.Subject(), &request)
}
