package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Event is a message of the event log.
type Event interface {
	// Subject returns the subject on which the event is published.
	Subject() string
	// ID returns the event's identity: the field event_id, which is also the message ID.
	ID() string
	// Stamped returns the fields that all events have.
	Stamped() *Stamp
	// Validate returns an *Error with CodeInvalid that names the wrong field.
	Validate() error
}

// Stamp holds the fields that all events have.
type Stamp struct {
	// Identity; duplicates of an event have the same one.
	EventID string `json:"event_id" ch:"event_id"`
	// Time of the event by the publisher's clock, UTC.
	At time.Time `json:"at" ch:"at"`
	// Position in its stream, set by the reader; 0 before.
	Sequence uint64 `json:"-" ch:"sequence"`
}

// ID implements Event.
func (s *Stamp) ID() string { return s.EventID }

// Stamped implements Event.
func (s *Stamp) Stamped() *Stamp { return s }

// SetSequence sets the position in the stream; the bus calls it on each event that it reads.
func (s *Stamp) SetSequence(n uint64) { s.Sequence = n }

// validate checks the stamp of an event.
func (s *Stamp) validate() error {
	if s.EventID == "" || len(s.EventID) > 256 {
		return Invalid("event_id", "want 1 to 256 characters, have %d", len(s.EventID))
	}
	if y := s.At.Year(); y < 1970 || y > 2200 {
		return Invalid("at", "%s is not an instant between 1970 and 2200", s.At.Format(time.RFC3339))
	}
	return nil
}

// Parse decodes and validates an event of the given subject. It ignores unknown fields, so that an
// old service survives a new field. The error is an *Error with CodeInvalid; the message is then a
// dead letter.
func Parse(subject string, data []byte) (Event, error) {
	if isSample(subject) && len(data) <= MaxMessageBytes {
		if s := readSample(data); s != nil {
			return validateEvent(s, subject)
		}
	}

	e := newEvent(subject)
	if e == nil {
		return nil, Invalid("", "no event has the subject %q", clip(subject))
	}
	if len(data) > MaxMessageBytes {
		return nil, Invalid("", "message has %d bytes, limit is %d", len(data), MaxMessageBytes)
	}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, jsonError(err)
	}
	return validateEvent(e, subject)
}

// ParseAll decodes the events of a message. A message on node.<node>.sample may hold an array of
// samples; any other message holds one event. If one sample is invalid, the whole message is an
// error that contains the sample's number.
func ParseAll(subject string, data []byte) ([]Event, error) {
	if !isArray(data) {
		e, err := Parse(subject, data)
		if err != nil {
			return nil, err
		}
		return []Event{e}, nil
	}
	if !isSample(subject) || len(data) > MaxMessageBytes {
		_, err := Parse(subject, data) // returns the reason
		return nil, err
	}

	samples := readSamples(data)
	events := make([]Event, 0, len(samples))
	for _, s := range samples {
		e, err := validateEvent(s, subject)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	if len(events) > 0 {
		return events, nil
	}

	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return nil, jsonError(err)
	}
	if len(elements) == 0 {
		return nil, Invalid("", "the array has no sample")
	}
	for i, element := range elements {
		e, err := Parse(subject, element)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// MessageID returns the message ID for one or more events of one message: the identity of the only
// event, or the identities of the first and the last event.
func MessageID(events []Event) string {
	if len(events) == 1 {
		return events[0].ID()
	}
	return events[0].ID() + " to " + events[len(events)-1].ID()
}

// isArray reports whether JSON is an array.
func isArray(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// isSample reports whether samples are published on a subject. Unlike newEvent it does not
// allocate.
func isSample(subject string) bool {
	rest, ok := strings.CutPrefix(subject, "node.")
	_, event, _ := strings.Cut(rest, ".")
	return ok && event == EventSample
}

// validateEvent returns the event if it is valid and belongs on the subject of its message.
func validateEvent(e Event, subject string) (Event, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if e.Subject() != subject {
		return nil, Invalid("", "the body belongs on subject %q, not on %q",
			clip(e.Subject()), clip(subject))
	}
	return e, nil
}

// newEvent returns an empty event of the type for a subject, or nil for an unknown subject.
func newEvent(subject string) Event {
	t := strings.Split(subject, ".")
	if len(t) == 2 && t[0] == "dead" {
		return &Dead{}
	}
	if len(t) != 3 {
		return nil
	}
	switch t[0] + "." + t[2] {
	case "job." + EventSubmitted:
		return &Submitted{}
	case "job." + EventStarted:
		return &Started{}
	case "job." + EventEpoch:
		return &Epoch{}
	case "job." + EventFinished, "job." + EventFailed, "job." + EventCancelled,
		"job." + EventLost:
		return &Ended{Outcome: t[2]}
	case "job." + EventAdmitted:
		return &JobAdmitted{}
	case "job." + EventAdvice:
		return &Advice{}
	case "job." + EventRisk:
		return &Risk{}
	case "job." + EventMoved:
		return &Moved{}
	case "job." + EventAlive:
		return &Alive{}
	case "node." + EventSample:
		return &Sample{}
	case "regressor." + EventTrained:
		return &Trained{}
	case "regressor." + EventFitting:
		return &Fitting{}
	case "regressor." + EventPromoted:
		return &Promoted{}
	case "regressor." + EventRejected:
		return &Rejected{}
	case "regressor." + EventDrift:
		return &Drift{}
	case "dead." + EventReplayed:
		return &Replayed{}
	}
	return nil
}

// jsonError converts a decoding error. The result names the field if encoding/json reports it.
func jsonError(err error) *Error {
	switch e := err.(type) {
	case *Error:
		return e
	case *json.UnmarshalTypeError:
		return Invalid(e.Field, "got a JSON %s, want %s", e.Value, e.Type)
	case *json.SyntaxError:
		return Invalid("", "not JSON at byte %d: %s", e.Offset, e.Error())
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return Invalid(strings.Trim(clip(name), `"`), "not a field of this request")
	}
	return Invalid("", "not JSON: %s", clip(err.Error()))
}

// Marshal encodes an event or reply as JSON. It returns a json.RawMessage unchanged, and it embeds
// the encoded advice of a Submitted event as it is. It cannot fail for a validated value; otherwise
// the error names the type.
func Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return v, nil
	case *Submitted:
		if v.EncodedAdvice != nil {
			return v.splice()
		}
	case *Advice:
		return Append(make([]byte, 0, 768+320*len(v.Alternatives)), v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}

// Append appends the result of Marshal to dst. With a reused dst, encoding an advice allocates
// nothing.
func Append(dst []byte, v any) ([]byte, error) {
	a, ok := v.(*Advice)
	if !ok {
		b, err := Marshal(v)
		return append(dst, b...), err
	}
	var w jsonWriter
	b := w.advice(dst, a)
	if w.err != nil {
		return dst, fmt.Errorf("encode %T: %w", v, w.err)
	}
	return b, nil
}
