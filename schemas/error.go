package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the kind of an Error. The set is closed, because two tables map it: to NATS service
// errors and to HTTP status codes.
type Code string

// The codes of an Error.
const (
	CodeInvalid     Code = "invalid"     // the request or event is wrong; a retry cannot help
	CodeNotFound    Code = "not_found"   // no such job, node or regressor
	CodeConflict    Code = "conflict"    // contradicts recorded events
	CodeUnavailable Code = "unavailable" // a service is not reachable; retry later
	CodeForbidden   Code = "forbidden"   // the user has no right to this, or the job has another owner
	CodeInternal    Code = "internal"    // a fault of Courier; details are in its log
)

// Error is the body of every error reply: {"code":"invalid","field":"slo","message":"…"}.
type Error struct {
	// Kind of error.
	Code Code `json:"code"`
	// Field of the request that is wrong; absent if the error concerns no single field.
	Field string `json:"field,omitempty"`
	// What is wrong and how to correct it.
	Message string `json:"message"`
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

// Plain returns the text of an error for people: an Error without its code, unless it is internal.
func Plain(err error) string {
	e, isKnown := errors.AsType[*Error](err)
	if !isKnown || e.Code == CodeInternal {
		return err.Error()
	}
	return strings.TrimPrefix(e.Field+": "+e.Message, ": ")
}

// Is matches another *Error by its code, so that errors.Is(err, ErrInvalid) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Field == "" && t.Message == ""
}

// Sentinel errors for errors.Is, one per code.
var (
	ErrInvalid     = &Error{Code: CodeInvalid}
	ErrNotFound    = &Error{Code: CodeNotFound}
	ErrConflict    = &Error{Code: CodeConflict}
	ErrUnavailable = &Error{Code: CodeUnavailable}
	ErrForbidden   = &Error{Code: CodeForbidden}
	ErrInternal    = &Error{Code: CodeInternal}
)

// Errorf returns an Error; field may be "".
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an Error with CodeInvalid that names the field.
func Invalid(field, format string, args ...any) *Error {
	return Errorf(CodeInvalid, field, format, args...)
}

// AsError returns err as the Error of a reply. An err of another type becomes CodeInternal without
// its details, which belong in the log.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error; see the service's log"}
}
