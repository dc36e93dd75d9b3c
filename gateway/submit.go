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

// submitTimeout is longer than the advisor works on a submission, so that the
// gateway does not give up on a job that is still being recorded.
const submitTimeout = schemas.SubmitTimeout + requestTimeout

// idempotencyKey is the header by which a client repeats a submission safely.
const idempotencyKey = "Idempotency-Key"

// maxKeyLength bounds an idempotency key, in characters.
const maxKeyLength = 255

// SubmitError answers a submission that failed after its job got an ID. The job may
// have been recorded nevertheless: submitting again with this ID cannot create a second.
type SubmitError struct {
	*schemas.Error
	JobID string `json:"job_id"` // of the job that may have been recorded
}

// failedSubmission is the error behind a SubmitError.
type failedSubmission struct {
	jobID   string
	refusal *schemas.Error // what the client gets
	cause   error          // what the log gets
}

func (f *failedSubmission) Error() string   { return f.cause.Error() }
func (f *failedSubmission) Unwrap() []error { return []error{f.refusal, f.cause} }

// submit passes a job request on to the advisor and answers with the recorded advice.
// The request carries an ID before the advisor is asked, so that a client that
// gets no answer can repeat it.
func (g *Gateway) submit(w http.ResponseWriter, r *http.Request) error {
	body, err := g.readBody(w, r)
	if err != nil {
		return err
	}
	key, err := readKey(r)
	if err != nil {
		return err
	}
	id, body, err := withJobID(body, key, askerOf(r.Context()).user)
	if err != nil {
		return err
	}

	var advice json.RawMessage
	if err := g.requestFor(r.Context(), schemas.SubjectJobSubmit, body, &advice, submitTimeout); err != nil {
		return failSubmission(w, err, id, key)
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
		return "", schemas.Invalid(idempotencyKey, "the header is given %d times", len(values))
	}

	key := values[0]
	if key == "" || len(key) > maxKeyLength {
		return "", schemas.Invalid(idempotencyKey, "%d characters, want 1 to %d", len(key), maxKeyLength)
	}
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return "", schemas.Invalid(idempotencyKey, "want printable ASCII without spaces")
		}
	}
	return key, nil
}

// withJobID returns the job ID of a request and the request with it. Without an ID in
// the body it is derived from the key, or random if there is no key either.
func withJobID(body json.RawMessage, key, user string) (string, json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return "", nil, schemas.Invalid("", "want a JSON object")
	}

	for name, value := range fields {
		if !strings.EqualFold(name, "id") { // JSON field names are matched regardless of case
			continue
		}
		var id string
		if err := json.Unmarshal(value, &id); err != nil {
			return "", nil, schemas.Invalid("id", "want text")
		}
		if id != "" && key != "" {
			return "", nil, schemas.Invalid(idempotencyKey, "give either this header or an id, which has the same effect")
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
	fields["id"], _ = json.Marshal(id) // a string: cannot fail
	body, err := json.Marshal(fields)
	return id, body, err
}

// jobIDOfKey derives a job ID from an idempotency key of a user. It needs no memory:
// every gateway derives the same ID, at any time.
func jobIDOfKey(user, key string) string {
	sum := sha256.Sum256([]byte(user + "\x00" + key)) // a user name has no NUL
	const size = 15                                   // bytes: 120 bits, 24 characters
	return schemas.JobIDPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:size]))
}

// failSubmission adds the job ID to an error after which the job may be recorded, and
// names the key where the key is what conflicts.
func failSubmission(w http.ResponseWriter, err error, id, key string) error {
	refusal := *schemas.AsError(err)
	switch refusal.Code {
	case schemas.CodeUnavailable, schemas.CodeInternal:
		w.Header().Set("Location", jobPath(id))
		refusal.Message += fmt.Sprintf("; job %s may be recorded: submit it again with this id", id)
		if key != "" {
			refusal.Message += " or the same " + idempotencyKey
		}
	case schemas.CodeConflict:
		if key != "" {
			refusal.Field = idempotencyKey
			refusal.Message = fmt.Sprintf("job %s was submitted with this key and another body", id)
		}
	default:
		return err // it was refused, and has no job
	}
	return &failedSubmission{jobID: id, refusal: &refusal, cause: err}
}
