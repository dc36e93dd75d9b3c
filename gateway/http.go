package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// handler responds to a request, or returns an error before it has written anything. The wrapper
// converts the error to a response.
type handler func(w http.ResponseWriter, r *http.Request) error

var statusOf = map[schemas.Code]int{
	schemas.CodeInvalid:     http.StatusBadRequest,
	schemas.CodeNotFound:    http.StatusNotFound,
	schemas.CodeConflict:    http.StatusConflict,
	schemas.CodeUnavailable: http.StatusServiceUnavailable,
	schemas.CodeForbidden:   http.StatusForbidden,
	schemas.CodeInternal:    http.StatusInternalServerError,
}

// httpError is an error whose response has more than its code.
type httpError struct {
	status   int            // more specific than that of the code; 0: that of the code
	jobID    string         // of a SubmitError; "": none
	response *schemas.Error // for the client
	cause    error          // for the log; nil: the response
}

func (e *httpError) Error() string { return cmp.Or(e.cause, error(e.response)).Error() }
func (e *httpError) Unwrap() error { return e.response }

func unavailable(message string) *schemas.Error {
	return &schemas.Error{Code: schemas.CodeUnavailable, Message: message}
}

// respond answers a request for the current state with v. A client that sends the ETag of an unchanged
// answer gets only status 304.
func respond(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "private, no-cache") // may be kept, but not used unasked
	tag := tagOf(body)
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, _ = w.Write(append(body, '\n')) // fails only if the client is disconnected
	return nil
}

func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// writeJSON responds with v, which must not be cached.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client is disconnected
	return nil
}

// readBody returns the body of a request if it is JSON and arrives within the timeout.
func readBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) (json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		err := schemas.Invalid("", "want a body with content type application/json")
		return nil, &httpError{status: http.StatusUnsupportedMediaType, response: err}
	}

	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(timeout)) // not supported in tests
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, schemas.MaxMessageBytes))
	if err == nil { // otherwise the connection is closed without reading the rest of the body
		_ = rc.SetReadDeadline(time.Time{})
	}

	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err := schemas.Invalid("", "body has more than %d bytes", tooLarge.Limit)
		return nil, &httpError{status: http.StatusRequestEntityTooLarge, response: err}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err := schemas.Invalid("", "body was not received within %s", timeout)
		return nil, &httpError{status: http.StatusRequestTimeout, response: err}
	}
	if err != nil {
		return nil, schemas.Invalid("", "body is incomplete")
	}

	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, schemas.Invalid("", "not JSON: %s", err)
	}
	return raw, nil
}

// parameters is the query of a request. Its methods convert values, and keep the first error.
type parameters struct {
	url.Values
	now time.Time // from which all durations of the query count
	err error
}

// readQuery returns the query of a request. Each of the names may occur at most once.
func readQuery(r *http.Request, names ...string) *parameters {
	q := &parameters{now: time.Now()}
	var err error
	if q.Values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.fail("", "invalid query: want name=value&…")
	}
	for name, values := range q.Values {
		if !slices.Contains(names, name) {
			q.fail(name, "is not a parameter of this route; want one of %v", names)
		}
		if len(values) > 1 {
			q.fail(name, "is repeated %d times", len(values))
		}
	}
	return q
}

func (q *parameters) fail(name, format string, args ...any) {
	q.err = cmp.Or(q.err, error(schemas.Invalid(name, format, args...)))
}

// count returns a whole number from low to high, or other if it is absent.
func (q *parameters) count(name string, low, high, other int) int {
	if !q.Has(name) {
		return other
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil {
		q.fail(name, "want a whole number")
	} else if n < low || n > high {
		q.fail(name, "%d is not between %d and %d", n, low, high)
	}
	return n
}

// bool returns a truth value, or false if it is absent.
func (q *parameters) bool(name string) bool {
	text := q.Get(name)
	if text != "" && text != "true" && text != "false" {
		q.fail(name, "want true or false")
	}
	return text == "true"
}

// instant returns an instant in RFC 3339, or that of a duration before now such as "24h" or "7d"; zero if it is
// absent.
func (q *parameters) instant(name string) time.Time {
	if q.Get(name) == "" {
		return time.Time{}
	}
	at, err := schemas.ParseInstant(q.Get(name), q.now)
	if err != nil {
		q.fail(name, "%s", err)
	}
	return at
}

const maxNames = 256

// names returns the comma-separated names of a parameter, or nil if it is absent.
func (q *parameters) names(parameter string) map[string]bool {
	if !q.Has(parameter) {
		return nil
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(q.Get(parameter), ",") {
		if !schemas.ValidToken(name) {
			q.fail(parameter, "want names of a-z, 0-9, _ and -, separated by commas")
		}
		if names[name] = true; len(names) > maxNames {
			q.fail(parameter, "has more than %d names", maxNames)
			break
		}
	}
	return names
}
