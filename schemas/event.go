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
	// Subject is where the event is published.
	Subject() string
	// ID is the event's identity: the message ID, carried as event_id.
	ID() string
	// Stamped returns what every event begins with.
	Stamped() *Stamp
	// Validate returns an *Error with CodeInvalid that names the wrong field.
	Validate() error
}

// Stamp is what every event begins with.
type Stamp struct {
	EventID  string    `json:"event_id" ch:"event_id"` // identity; copies of the event share it
	At       time.Time `json:"at" ch:"at"`             // when it happened, by the publisher's clock, UTC
	Sequence uint64    `json:"-" ch:"sequence"`        // place in its stream; set by the reader, 0 before
}

// ID implements Event.
func (s *Stamp) ID() string { return s.EventID }

// Stamped implements Event.
func (s *Stamp) Stamped() *Stamp { return s }

// SetSequence is called by the bus on each event that it reads from a stream.
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

// Parse reads an event of the given subject. Unknown fields are ignored, so
// that an old service survives a new field. The error is an *Error with
// CodeInvalid; the message belongs to the dead letters then.
func Parse(subject string, data []byte) (Event, error) {
	if isSample(subject) && len(data) <= MaxMessageBytes {
		if s := readSample(data); s != nil {
			return checked(s, subject)
		}
	}
	e := newEvent(subject)
	if e == nil {
		return nil, Invalid("", "no event has the subject %q", clip(subject))
	}
	if len(data) > MaxMessageBytes {
		return nil, Invalid("", "%d bytes are more than the %d of the largest message", len(data), MaxMessageBytes)
	}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, jsonError(err)
	}
	return checked(e, subject)
}

// ParseAll reads the events of a message: one, or of node.<node>.sample all of an
// array of samples, in its order. One that cannot be read makes all of them an
// error, which tells its place.
func ParseAll(subject string, data []byte) ([]Event, error) {
	if !isArray(data) {
		e, err := Parse(subject, data)
		if err != nil {
			return nil, err
		}
		return []Event{e}, nil
	}
	if !isSample(subject) || len(data) > MaxMessageBytes {
		_, err := Parse(subject, data) // it says why not
		return nil, err
	}
	samples := readSamples(data)
	all := make([]Event, 0, len(samples))
	for _, s := range samples {
		e, err := checked(s, subject)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", len(all)+1, err)
		}
		all = append(all, e)
	}
	if len(all) > 0 {
		return all, nil
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, jsonError(err)
	}
	if len(texts) == 0 {
		return nil, Invalid("", "the array has no sample")
	}
	for i, text := range texts {
		e, err := Parse(subject, text)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// MessageID is the identity of a message of some events: the event's, or of several
// that from the first to the last.
func MessageID(events []Event) string {
	if len(events) == 1 {
		return events[0].ID()
	}
	return events[0].ID() + " to " + events[len(events)-1].ID()
}

// isArray tells an array from other JSON.
func isArray(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// isSample says whether a subject is that of samples, without the garbage of newEvent.
func isSample(subject string) bool {
	rest, is := strings.CutPrefix(subject, "node.")
	_, event, _ := strings.Cut(rest, ".")
	return is && event == EventSample
}

// checked is an event that is valid and has the subject that its message had.
func checked(e Event, subject string) (Event, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if e.Subject() != subject {
		return nil, Invalid("", "the body says %q, its subject %q", clip(e.Subject()), clip(subject))
	}
	return e, nil
}

// newEvent returns an empty event of the type that the subject names, or nil.
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
	case "job." + EventFinished, "job." + EventFailed, "job." + EventCancelled, "job." + EventLost:
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

// jsonError turns a decoding error into an Error that names the field where
// encoding/json knows it.
func jsonError(err error) *Error {
	switch e := err.(type) {
	case *Error:
		return e
	case *json.UnmarshalTypeError:
		return Invalid(e.Field, "a JSON %s does not fit, want %s", e.Value, e.Type)
	case *json.SyntaxError:
		return Invalid("", "not JSON at byte %d: %s", e.Offset, e.Error())
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return Invalid(strings.Trim(clip(name), `"`), "is not a field of this request")
	}
	return Invalid("", "not JSON: %s", clip(err.Error()))
}

// Marshal writes an event or reply as JSON; what was written before stays as it
// is. It cannot fail for a validated value; the error names the type otherwise.
func Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return v, nil
	case *Submitted:
		if v.Written != nil {
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

// Append is Marshal at the end of dst, which spares an advice the allocation of
// more bytes than everything else that it is made of.
func Append(dst []byte, v any) ([]byte, error) {
	a, is := v.(*Advice)
	if !is {
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
