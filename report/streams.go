package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Streams compares the streams of a server with the declared streams.
type Streams struct {
	OK      bool           `json:"ok"` // nothing differs
	Streams []streamReport `json:"streams"`
	Changed []string       `json:"changed,omitempty"` // changes made by --apply
	Wrong   []string       `json:"wrong,omitempty"`   // all differences
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
	OldestSeconds float64            `json:"oldest_seconds,omitempty"` // age of the oldest message
	Declared      streamLimits       `json:"declared"`
	Server        streamLimits       `json:"server"`
	Differences   []differenceReport `json:"differences,omitempty"`
	Consumers     []consumerReport   `json:"consumers"`
	Missing       []string           `json:"missing_consumers,omitempty"` // declared consumers that do not exist yet
}

// streamLimits are the limits of a stream. An age of 0 and bytes below 0 are no limit.
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

// NewStreams returns the report of a server; changed describes the changes that were made.
func NewStreams(states []bus.StreamState, changed []string, now time.Time) *Streams {
	r := &Streams{OK: true, Changed: changed}
	for i := range states {
		s := &states[i]
		one := streamReport{
			Stream:      s.Declared.Name,
			OK:          s.OK(),
			Found:       s.Found,
			Messages:    s.Messages,
			Bytes:       s.Bytes,
			First:       s.First,
			Last:        s.Last,
			Declared:    limitsOf(&s.Declared),
			Server:      limitsOf(&s.Server),
			Differences: differencesOf(s.Differences),
			Consumers:   []consumerReport{},
			Missing:     s.Missing,
		}
		if !s.OldestAt.IsZero() {
			one.OldestAt, one.OldestSeconds = &s.OldestAt, max(now.Sub(s.OldestAt), 0).Seconds()
		}
		for _, c := range s.Consumers {
			one.Consumers = append(one.Consumers, consumerReport{
				c.Name,
				len(c.Differences) == 0,
				c.Durable,
				c.Declared,
				c.Pending,
				c.AckPending,
				c.Redelivered,
				differencesOf(c.Differences),
			})
		}
		r.OK = r.OK && one.OK
		r.Streams = append(r.Streams, one)
	}
	for _, d := range deviations(states) {
		r.Wrong = append(r.Wrong, d.text())
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

// limitsOf converts a declaration to base units.
func limitsOf(s *schemas.Stream) streamLimits {
	return streamLimits{
		Subjects:        s.Subjects,
		MaxAgeSeconds:   s.MaxAge.Seconds(),
		MaxBytes:        s.MaxBytes,
		Replicas:        s.Replicas,
		WindowSeconds:   s.Duplicates.Seconds(),
		MaxMessageBytes: s.MaxMessage,
	}
}

// deviation is a difference with its stream or consumer.
type deviation struct {
	place string // name of the stream, or of stream and consumer
	bus.Difference
}

func deviations(states []bus.StreamState) []deviation {
	var all []deviation
	for i := range states {
		s := &states[i]
		for _, d := range s.Differences {
			all = append(all, deviation{s.Declared.Name, d})
		}
		for _, consumer := range s.Consumers {
			for _, d := range consumer.Differences {
				all = append(all, deviation{s.Declared.Name + " " + consumer.Name, d})
			}
		}
	}
	return all
}

// ChangedStreams describes the differences that are gone.
func ChangedStreams(before, after []bus.StreamState) []string {
	left := map[string]bool{}
	for _, d := range deviations(after) {
		left[d.place+" "+d.Setting] = true
	}
	var lines []string
	for _, d := range deviations(before) {
		switch {
		case left[d.place+" "+d.Setting]:
		case d.Have == bus.Absent:
			lines = append(lines, d.place+": created")
		default:
			lines = append(lines,
				fmt.Sprintf("%s: %s changed from %s to %s", d.place, d.Setting, d.Have,
					strings.TrimPrefix(d.Want, "at least ")))
		}
	}
	return lines
}

// text describes the difference from the declaration.
func (d deviation) text() string {
	line := fmt.Sprintf("%s: %s is %s, want %s", d.place, d.Setting, d.Have, d.Want)
	if d.Have == bus.Absent {
		line = d.place + ": absent"
	}
	if d.Failure != "" {
		line += "; NATS cannot change it: " + d.Failure
	}
	return line
}

// WriteText writes streams, consumers, changes and differences. applied reports whether changes
// were requested.
func (r *Streams) WriteText(out io.Writer, applied bool) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stream\tmessages\tbytes\tmax bytes\toldest\tmax age\twindow\treplicas\tstate")
	for i := range r.Streams {
		s := &r.Streams[i]
		if !s.Found {
			fmt.Fprintf(t, "%s\t-\t-\t%s\t-\t%s\t%s\t%d\tabsent\n", s.Stream,
				sizeText(s.Declared.MaxBytes), ageText(s.Declared.MaxAgeSeconds),
				ageText(s.Declared.WindowSeconds), s.Declared.Replicas)
			continue
		}
		oldest := "-"
		if s.OldestAt != nil {
			oldest = ageText(s.OldestSeconds)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Stream, s.Messages,
			sizeText(int64(s.Bytes)), withDeclared(sizeText(s.Server.MaxBytes),
				sizeText(s.Declared.MaxBytes)),
			oldest, withDeclared(ageLimit(s.Server.MaxAgeSeconds), ageLimit(s.Declared.MaxAgeSeconds)),
			withDeclared(ageText(s.Server.WindowSeconds),
				ageText(s.Declared.WindowSeconds)),
			withDeclared(fmt.Sprint(s.Server.Replicas), fmt.Sprint(s.Declared.Replicas)), stateOf(s.OK))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printReaders(out, r); err != nil {
		return err
	}
	for i, line := range slices.Concat(r.Changed, r.Wrong) {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, line)
	}
	if !r.OK && !applied {
		fmt.Fprintln(out, "\ncourier streams --apply changes the server to the declaration.")
	}
	return nil
}

// printReaders writes the progress of each consumer.
func printReaders(out io.Writer, r *Streams) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nstream\tconsumer\tpending\tack pending\tredelivered\tstate")
	for i := range r.Streams {
		s := &r.Streams[i]
		for _, c := range s.Consumers {
			state := "follows"
			switch {
			case c.Declared:
				state = stateOf(c.OK)
			case c.Durable && strings.HasPrefix(c.Name, "store-"):
				state = "unused: of a store with other shards"
			case c.Durable:
				state = "not Courier's"
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\n", s.Stream, c.Name, c.Pending, c.AckPending,
				c.Redelivered, state)
		}
		for _, name := range s.Missing {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\tabsent: the first store creates it\n",
				s.Stream, name)
		}
	}
	return t.Flush()
}

func stateOf(ok bool) string { return map[bool]string{true: "ok", false: "differs"}[ok] }

// withDeclared returns a limit, and the declared one if it differs.
func withDeclared(have, want string) string {
	if have == want {
		return have
	}
	return fmt.Sprintf("%s (declared %s)", have, want)
}

// sizeText formats bytes with a binary unit; below 0: unlimited.
func sizeText(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	units := []string{"B", "KiB", "MiB", "GiB"}
	value, i := float64(n), 0
	for value >= 1024 && i < len(units)-1 {
		value, i = value/1024, i+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[i]
}

// ageLimit formats the limit of an age; 0: unlimited.
func ageLimit(seconds float64) string {
	if seconds <= 0 {
		return "unlimited"
	}
	return ageText(seconds)
}

// ageText formats an age with its largest unit, and the next smaller one if it is not 0.
func ageText(seconds float64) string {
	d := max(time.Duration(seconds*float64(time.Second)), 0).Truncate(time.Second)
	const day = 24 * time.Hour
	two := func(unit, next time.Duration, name, nextName string) string {
		if rest := d % unit / next; rest > 0 {
			return fmt.Sprintf("%d%s%d%s", d/unit, name, rest, nextName)
		}
		return fmt.Sprintf("%d%s", d/unit, name)
	}
	switch {
	case d >= 2*day:
		return two(day, time.Hour, "d", "h")
	case d >= time.Hour:
		return two(time.Hour, time.Minute, "h", "m")
	case d >= time.Minute:
		return two(time.Minute, time.Second, "m", "s")
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// StreamDifference describes that a stream is absent or that one of its settings differs; empty if
// neither is the case.
func StreamDifference(states []bus.StreamState, stream, setting string) string {
	for _, d := range deviations(states) {
		if d.place == stream && (d.Setting == setting || d.Have == bus.Absent) {
			return d.text()
		}
	}
	return ""
}
