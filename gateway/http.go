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
func readBody(
	w http.ResponseWriter, r *http.Request, timeout time.Duration,
) (json.RawMessage, error) {
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

	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
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

// readQuery returns the query of a request. Each of the names may occur at most once.
func readQuery(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, schemas.Invalid("", "invalid query: want name=value&…")
	}
	for name, values := range query {
		if !slices.Contains(names, name) {
			return nil, schemas.Invalid(name, "is not a parameter of this route; want one of %v",
				names)
		}
		if len(values) > 1 {
			return nil, schemas.Invalid(name, "is repeated %d times", len(values))
		}
	}
	return query, nil
}

// readCount returns a whole number of the query from low to high, or other if it is absent.
func readCount(query url.Values, name string, low, high, other int) (int, error) {
	if !query.Has(name) {
		return other, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return 0, schemas.Invalid(name, "want a whole number")
	}
	if n < low || n > high {
		return 0, schemas.Invalid(name, "%d is not between %d and %d", n, low, high)
	}
	return n, nil
}

// readBool returns a truth value of the query, or false if it is absent.
func readBool(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, schemas.Invalid(name, "want true or false")
}

// readPeriod returns the parameters since and until, each an instant in RFC 3339 or a duration before
// now such as "24h" or "7d"; zero if absent.
func readPeriod(query url.Values, now time.Time) (since, until time.Time, err error) {
	if since, err = readInstant(query, "since", now); err == nil {
		until, err = readInstant(query, "until", now)
	}
	return since, until, err
}

func readInstant(query url.Values, name string, now time.Time) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := schemas.ParseInstant(text, now)
	if err != nil {
		return at, schemas.Invalid(name, "%s", err)
	}
	return at, nil
}

const maxNames = 256

// readNames returns the comma-separated names of a parameter, or nil if it is absent.
func readNames(query url.Values, parameter string) (map[string]bool, error) {
	if !query.Has(parameter) {
		return nil, nil
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(query.Get(parameter), ",") {
		if !schemas.ValidToken(name) {
			return nil, schemas.Invalid(parameter,
				"want names of a-z, 0-9, _ and -, separated by commas")
		}
		if names[name] = true; len(names) > maxNames {
			return nil, schemas.Invalid(parameter, "has more than %d names", maxNames)
		}
	}
	return names, nil
}
