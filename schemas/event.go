package schemas

import (
	"cmp"
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
