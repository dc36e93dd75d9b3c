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

func (g *Gateway) predict(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, g.options.BodyTimeout)
	if err != nil {
		return err
	}
	return g.forward(w, r, schemas.SubjectJobPredict, body)
}

func (g *Gateway) listJobs(w http.ResponseWriter, r *http.Request) error {
	query := readQuery(r, "state", "search", "user", "model", "dataset", "node", "label", "since",
		"until", "at_risk", "missed", "brief", "sort", "limit", "after")
	request := schemas.JobListRequest{
		State:   schemas.StateSelection(query.Get("state")),
		Search:  query.Get("search"),
		User:    query.Get("user"),
		Model:   query.Get("model"),
		Dataset: query.Get("dataset"),
		Node:    query.Get("node"),
		Label:   query.Get("label"),
		Since:   query.instant("since"),
		Until:   query.instant("until"),
		AtRisk:  query.bool("at_risk"),
		Missed:  query.bool("missed"),
		Brief:   query.bool("brief"),
		Sort:    query.Get("sort"),
		Limit:   query.count("limit", 1, schemas.MaxPage, schemas.DefaultPage),
		After:   query.Get("after"),
	}
	if query.err != nil {
		return query.err
	}
	return g.forward(w, r, request.Subject(), &request)
}

func (g *Gateway) jobStatus(w http.ResponseWriter, r *http.Request) error {
	if err := readQuery(r).err; err != nil {
		return err
	}
	request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
	return g.forward(w, r, request.Subject(), &request)
}

func (g *Gateway) score(w http.ResponseWriter, r *http.Request) error {
	query := readQuery(r, "since", "until", "user", "model")
	request := schemas.ScoreRequest{
		User: query.Get("user"), Model: query.Get("model"), Since: query.instant("since"),
		Until: query.instant("until"),
	}
	if query.err != nil {
		return query.err
	}
	return g.forward(w, r, request.Subject(), &request)
}

// cancelJob waits as long as a submission: the advisor records both.
func (g *Gateway) cancelJob(w http.ResponseWriter, r *http.Request) error {
	query := readQuery(r, "reason")
	if query.err != nil {
		return query.err
	}
	request := schemas.JobCancelRequest{JobID: r.PathValue("id"), Reason: query.Get("reason")}
	var status json.RawMessage
	if err := g.requestFor(r.Context(), request.Subject(), &request, &status, submitTimeout); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, status)
}

// forward sends a request to a service and responds with the unchanged reply.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, subject string, request any) error {
	var reply json.RawMessage
	if err := g.request(r.Context(), subject, request, &reply); err != nil {
		return err
	}
	return respond(w, r, reply)
}

// ofJob returns the handler of a path with a job ID. It responds with what read finds in the event
// log.
func ofJob(timeout time.Duration, read func(context.Context, string) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := readQuery(r).err; err != nil {
			return err
		}
		// The ID becomes a filter, in which "*" would match every job.
		request := schemas.JobStatusRequest{JobID: r.PathValue("id")}
		if err := request.Validate(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		found, err := read(ctx, request.JobID)
		var known *schemas.Error
		switch {
		case errors.As(err, &known):
			return err
		case err != nil:
			return unavailable("the event log cannot be read; retry later")
		}
		return respond(w, r, found)
	}
}

// advice returns the last advice event of a job, or the advice that answered its submission.
func (g *Gateway) advice(ctx context.Context, id string) (any, error) {
	var last *schemas.Advice
	for _, o := range []bus.FollowOptions{
		{Stream: schemas.StreamJob, Subjects: []string{schemas.JobSubject(id, schemas.EventSubmitted)}},
		{Stream: schemas.StreamAdvice, Subjects: []string{schemas.JobSubject(id, schemas.EventAdvice)}},
	} {
		o.LastPerSubject = true
		err := g.bus.Read(ctx, o, func(r bus.Record) error {
			switch e := r.Event.(type) {
			case *schemas.Advice:
				last = e
			case *schemas.Submitted:
				last = &e.Advice
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if last == nil {
		return nil, schemas.Errorf(schemas.CodeNotFound, "id", "no advice is recorded for this job")
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

func (g *Gateway) jobHistory(ctx context.Context, id string) (any, error) {
	return receipt.ReadHistory(ctx, g.bus, id)
}

func (g *Gateway) jobReceipt(ctx context.Context, id string) (any, error) {
	found, err := receipt.Read(ctx, g.bus, id)
	if err != nil {
		return nil, err
	}
	return ReadableReceipt{JobReceipt: found, Lines: found.Lines()}, nil
}
