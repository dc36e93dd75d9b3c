package main

import (
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// streamsReport is what courier streams -o json prints.
type streamsReport struct {
	OK      bool           `json:"ok"` // nothing differs
	Streams []streamReport `json:"streams"`
	Changed []string       `json:"changed,omitempty"` // by --apply, in words
	Wrong   []string       `json:"wrong,omitempty"`   // all differences, in words
}

type streamReport struct {
	Stream        string             `json:"stream"`
	OK            bool               `json:"ok"`
	Found         bool               `json:"found"`
	Messages      uint64             `json:"messages"`
	Bytes         uint64             `json:"bytes"`
	First         uint64             `json:"first_sequence"`
	Last          uint64             `json:"last_sequence"`
	OldestAt      *time.Time         `json:"oldest_at,omitempty"`
	OldestSeconds float64            `json:"oldest_seconds,omitempty"` // its age
	Declared      streamLimits       `json:"declared"`
	Server        streamLimits       `json:"server"`
	Differences   []differenceReport `json:"differences,omitempty"`
	Consumers     []consumerReport   `json:"consumers"`
	Missing       []string           `json:"missing_consumers,omitempty"` // declared, and not made yet
}

// streamLimits are those of a stream; no age 0 or bytes below 0 is a limit.
type streamLimits struct {
	Subjects        []string `json:"subjects"`
	MaxAgeSeconds   float64  `json:"max_age_seconds"`
	MaxBytes        int64    `json:"max_bytes"`
	Replicas        int      `json:"replicas"`
	WindowSeconds   float64  `json:"duplicate_window_seconds"`
	MaxMessageBytes int32    `json:"max_message_bytes"`
}

type consumerReport struct {
	Name        string             `json:"name"`
	OK          bool               `json:"ok"`
	Durable     bool               `json:"durable"`
	Declared    bool               `json:"declared"`
	Pending     uint64             `json:"pending"`
	AckPending  int                `json:"ack_pending"`
	Redelivered int                `json:"redelivered"`
	Differences []differenceReport `json:"differences,omitempty"`
}

type differenceReport struct {
	Setting string `json:"setting"`
	Have    string `json:"have"`
	Want    string `json:"want"`
	Failure string `json:"failure,omitempty"` // why NATS did not change it
}

// reportStreams turns the server's state into what is printed.
func reportStreams(states []bus.StreamState, changed []string, now time.Time) *streamsReport {
	r := &streamsReport{OK: true, Changed: changed}
	for i := range states {
		s := &states[i]
		one := streamReport{Stream: s.Declared.Name, OK: s.OK(), Found: s.Found, Messages: s.Messages, Bytes: s.Bytes, First: s.First, Last: s.Last,
			Declared: limitsOf(&s.Declared), Server: limitsOf(&s.Server), Differences: differencesOf(s.Differences), Consumers: []consumerReport{}}
		if !s.OldestAt.IsZero() {
			one.OldestAt, one.OldestSeconds = &s.OldestAt, max(now.Sub(s.OldestAt), 0).Seconds()
		}
		for _, c := range s.Consumers {
			one.Consumers = append(one.Consumers, consumerReport{c.Name, len(c.Differences) == 0, c.Durable, c.Declared, c.Pending, c.AckPending, c.Redelivered, differencesOf(c.Differences)})
		}
		for _, d := range schemas.StoreDurables() {
			if d.Stream == s.Declared.Name && !slices.ContainsFunc(s.Consumers, func(c bus.ConsumerState) bool { return c.Name == d.Name }) {
				one.Missing = append(one.Missing, d.Name)
			}
		}
		r.OK = r.OK && one.OK
		r.Streams = append(r.Streams, one)
	}
	for _, d := range deviations(states) {
		r.Wrong = append(r.Wrong, d.words())
	}
	return r
}

func differencesOf(all []bus.Difference) []differenceReport {
	var out []differenceReport
	for _, d := range all {
		out = append(out, differenceReport(d))
	}
	return out
}

// limitsOf is a declaration in base units.
func limitsOf(s *schemas.Stream) streamLimits {
	return streamLimits{Subjects: s.Subjects, MaxAgeSeconds: s.MaxAge.Seconds(), MaxBytes: s.MaxBytes, Replicas: s.Replicas, WindowSeconds: s.Duplicates.Seconds(), MaxMessageBytes: s.MaxMessage}
}
