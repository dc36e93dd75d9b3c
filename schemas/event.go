package schemas

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// JobStamp holds the fields that all events of a job have.
type JobStamp struct {
	Stamp
	// [a-z0-9_-]{1,64}
	JobID string `json:"job_id" ch:"job_id"`
	// Number of the run, from 1; 0 before the first start.
	Run uint32 `json:"run" ch:"run"`
}

func (s *JobStamp) validate() error {
	return cmp.Or(s.Stamp.validate(), validateToken("job_id", s.JobID))
}

// Parse decodes and validates an event of the given subject. It ignores unknown fields, so that an
// old service survives a new field. The error is an *Error with CodeInvalid; the message is then a
// dead letter.
func Parse(subject string, data []byte) (Event, error) {
	e := newEvent(subject)
	if e == nil {
		return nil, Invalid("", "no event has the subject %q", Clip(subject))
	}
	if err := decode(data, e, tolerant); err != nil {
		return nil, err
	}
	return validateEvent(e, subject)
}

// ParseAll decodes the events of a message. A message on node.<node>.sample may hold an array of
// samples; any other message holds one event. If one sample is invalid, the whole message is an
// error that contains the sample's number.
func ParseAll(subject string, data []byte) ([]Event, error) {
	isSample := strings.HasPrefix(subject, "node.") && strings.HasSuffix(subject, "."+EventSample)
	if isSample && isArray(data) && len(data) <= MaxMessageBytes {
		return parseSamples(subject, data)
	}
	e, err := Parse(subject, data)
	if err != nil {
		return nil, err
	}
	return []Event{e}, nil
}

// parseSamples decodes an array of samples.
func parseSamples(subject string, data []byte) ([]Event, error) {
	var events []Event
	d := jsontext.NewDecoder(bytes.NewBuffer(data), tolerant)
	_, _ = d.ReadToken() // the opening bracket
	for d.PeekKind() != ']' {
		s := &Sample{}
		if err := jsonv2.UnmarshalDecode(d, s); err != nil {
			return nil, fmt.Errorf("sample %d: %w", len(events)+1, jsonError(err))
		}
		e, err := validateEvent(s, subject)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}

	_, _ = d.ReadToken() // the closing bracket
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, Invalid("", "not JSON: data after the array of samples")
	}
	if len(events) == 0 {
		return nil, Invalid("", "the array has no sample")
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

// validateEvent returns the event if it is valid and belongs on the subject of its message.
func validateEvent(e Event, subject string) (Event, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if e.Subject() != subject {
		return nil, Invalid("", "the body belongs on subject %q, not on %q",
			Clip(e.Subject()), Clip(subject))
	}
	return e, nil
}

// newEvents maps the first and the last token of a subject to a function that returns an empty event.
var newEvents = map[string]func() Event{
	"job." + EventSubmitted:      func() Event { return &Submitted{} },
	"job." + EventStarted:        func() Event { return &Started{} },
	"job." + EventEpoch:          func() Event { return &Epoch{} },
	"job." + EventFinished:       func() Event { return &Ended{Outcome: EventFinished} },
	"job." + EventFailed:         func() Event { return &Ended{Outcome: EventFailed} },
	"job." + EventCancelled:      func() Event { return &Ended{Outcome: EventCancelled} },
	"job." + EventLost:           func() Event { return &Ended{Outcome: EventLost} },
	"job." + EventFound:          func() Event { return &Ended{Outcome: EventFound} },
	"job." + EventAdmitted:       func() Event { return &JobAdmitted{} },
	"job." + EventAdvice:         func() Event { return &Advice{} },
	"job." + EventRisk:           func() Event { return &Risk{} },
	"job." + EventMoved:          func() Event { return &Moved{} },
	"job." + EventAlive:          func() Event { return &Alive{} },
	"node." + EventSample:        func() Event { return &Sample{} },
	"regressor." + EventTrained:  func() Event { return &Trained{} },
	"regressor." + EventPromoted: func() Event { return &Promoted{} },
	"regressor." + EventRejected: func() Event { return &Rejected{} },
	"regressor." + EventDrift:    func() Event { return &Drift{} },
	"dead." + EventReplayed:      func() Event { return &Replayed{} },
}

// newEvent returns an empty event of the type for a subject, or nil for an unknown subject.
func newEvent(subject string) Event {
	first, rest, hasRest := strings.Cut(subject, ".")
	_, last, hasLast := strings.Cut(rest, ".")
	if first == "dead" && hasRest && !hasLast {
		return &Dead{}
	}
	if create := newEvents[first+"."+last]; create != nil {
		return create()
	}
	return nil
}
