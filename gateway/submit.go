package gateway

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"courier/schemas"
)

// idempotencyKey is the header with which a client can safely retry a submission.
const idempotencyKey = "Idempotency-Key"

// maxKeyLength is the maximum length of an idempotency key in characters.
const maxKeyLength = 255

// SubmitError is the response to a submission that failed after its job got an ID. The job may have
// been recorded. A retry with this ID cannot create a second job.
type SubmitError struct {
	*schemas.Error
	JobID string `json:"job_id"` // ID of the job that may have been recorded
}

// submit forwards a job request to the advisor and responds with the recorded advice. The gateway adds a
// missing job ID before, so that a client without a response can retry.
func (g *Gateway) submit(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, g.options.BodyTimeout)
	if err != nil {
		return err
	}
	key, err := readKey(r)
	if err != nil {
		return err
	}
	id, body, err := withJobID(body, key, identityOf(r.Context()).user)
	if err != nil {
		return err
	}

	var advice json.RawMessage
	err = g.requestFor(r.Context(), schemas.SubjectJobSubmit, body, &advice, submitTimeout)
	if err != nil {
		return submissionError(w, err, id, key)
	}
	w.Header().Set("Location", jobPath(id))
	return writeJSON(w, http.StatusCreated, advice)
}

func jobPath(id string) string { return "/api/v1/jobs/" + url.PathEscape(id) }

// readKey returns the idempotency key of a request; "" if it has none.
func readKey(r *http.Request) (string, error) {
	values := r.Header.Values(idempotencyKey)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", schemas.Invalid(idempotencyKey, "header is repeated %d times", len(values))
	}

	key := values[0]
	if key == "" || len(key) > maxKeyLength {
		return "", schemas.Invalid(idempotencyKey, "has %d characters, want 1 to %d", len(key),
			maxKeyLength)
	}
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return "", schemas.Invalid(idempotencyKey, "want printable ASCII without spaces")
		}
	}
	return key, nil
}

// withJobID returns the job ID of a request, and the request with that ID. If the body has no ID,
// it is derived from the key, or random without a key.
func withJobID(body json.RawMessage, key, user string) (string, json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return "", nil, schemas.Invalid("", "want a JSON object")
	}

	for name, value := range fields {
		if !strings.EqualFold(name, "id") { // encoding/json ignores the case of field names
			continue
		}
		var id string
		if err := json.Unmarshal(value, &id); err != nil {
			return "", nil, schemas.Invalid("id", "want a string")
		}
		if id != "" && key != "" {
			return "", nil, schemas.Invalid(idempotencyKey,
				"conflicts with the field id; use one of them")
		}
		if id != "" {
			return id, body, nil
		}
		delete(fields, name)
	}

	id := schemas.NewJobID()
	if key != "" {
		id = jobIDOfKey(user, key)
	}
	fields["id"], _ = json.Marshal(id) // cannot fail for a string
	body, err := json.Marshal(fields)
	return id, body, err
}

// jobIDOfKey derives a job ID from a user's idempotency key. Every gateway derives the same ID, so
// that no state is needed.
func jobIDOfKey(user, key string) string {
	const size = 15                                   // bytes: 120 bits, 24 characters
	sum := sha256.Sum256([]byte(user + "\x00" + key)) // a user name has no NUL
	return schemas.JobIDPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:size]))
}

// submissionError adds the job ID to an error after which the job may be recorded. For a conflict
// it names the idempotency key.
func submissionError(w http.ResponseWriter, err error, id, key string) error {
	response := *schemas.AsError(err)
	switch response.Code {
	case schemas.CodeUnavailable, schemas.CodeInternal:
		w.Header().Set("Location", jobPath(id))
		response.Message += fmt.Sprintf("; job %s may be recorded: retry with this id", id)
		if key != "" {
			response.Message += " or the same " + idempotencyKey
		}
	case schemas.CodeConflict:
		if key != "" {
			response.Field = idempotencyKey
			response.Message = fmt.Sprintf("job %s was submitted with this key and another body",
				id)
		}
	default:
		return err // the request was rejected: no job was created
	}
	return &httpError{jobID: id, response: &response, cause: err}
}
