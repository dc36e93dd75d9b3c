package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"courier/receipt"
	"courier/schemas"
)

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
	return writeJSON(w, http.StatusOK, h)
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
	return writeJSON(w, http.StatusOK, ReadableReceipt{JobReceipt: found, Lines: found.Lines()})
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
