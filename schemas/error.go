package schemas

import (
	"errors"
	"fmt"
)

// Code says what kind of error crossed the wire. It is a closed set, because
// two tables translate it: to NATS service errors and to HTTP status.
type Code string

// The codes of an Error.
const (
	CodeInvalid     Code = "invalid"     // the request or event itself is wrong; repeating it cannot help
	CodeNotFound    Code = "not_found"   // no such job, node or regressor
	CodeConflict    Code = "conflict"    // contradicts what is recorded already
	CodeUnavailable Code = "unavailable" // a part is away; try again later
	CodeForbidden   Code = "forbidden"   // this user may not: the job is another's, or the right is missing
	CodeInternal    Code = "internal"    // a fault of Courier; details are in its log
)

// Error is the body of every refusal: {"code":"invalid","field":"slo","message":"…"}.
type Error struct {
	Code    Code   `json:"code"`            // kind of error
	Field   string `json:"field,omitempty"` // field of the request that is wrong; absent if none is
	Message string `json:"message"`         // what is wrong, and what would be right
}

// Error implements error.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Message)
}

// Is matches another *Error by its code, so that errors.Is(err, ErrInvalid) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Field == "" && t.Message == ""
}

// Sentinels for errors.Is, one for each code.
var (
	ErrInvalid     = &Error{Code: CodeInvalid}
	ErrNotFound    = &Error{Code: CodeNotFound}
	ErrConflict    = &Error{Code: CodeConflict}
	ErrUnavailable = &Error{Code: CodeUnavailable}
	ErrForbidden   = &Error{Code: CodeForbidden}
	ErrInternal    = &Error{Code: CodeInternal}
)

// Invalid returns an Error with CodeInvalid that names the field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// AsError returns err as the Error that crosses the wire. An error that is not
// an Error becomes CodeInternal without its details, which belong in the log.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error; see the service's log"}
}
