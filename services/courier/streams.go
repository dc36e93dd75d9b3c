package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
)

type streamsCommand struct {
	natsFlags
	replicaFlags
	outputFlags
	Apply bool `help:"Create what is absent, change what differs where NATS can, and say what it cannot. No message is dropped."`
}

// streamsTimeout bounds all questions and changes of one call.
const streamsTimeout = 30 * time.Second

// Help is the rest of what --help says.
func (c *streamsCommand) Help() string {
	return "Compares every stream of the log, and the durables of the store, with what this program declares. What keeps more than is declared " +
		"(age, bytes, replicas) is the operator's own and stays. The exit status is 1 when something differs."
}

// Run shows the streams, after changing them where that is wanted.
func (c *streamsCommand) Run(w *world) error {
	b, err := c.connectReplicated(w, c.replicaFlags)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, streamsTimeout)
	defer cancel()
	states, err := b.Streams(ctx)
	if err != nil {
		return err
	}
	var done []string
	if c.Apply {
		before := deviations(states)
		if states, err = b.ApplyStreams(ctx); err != nil {
			return err
		}
		done = changed(before, deviations(states))
	}
	r := reportStreams(states, done, time.Now())
	if c.Output == "json" {
		err = indented(w.stdout, r)
	} else {
		err = printStreams(w.stdout, r, c.Apply)
	}
	if err == nil && !r.OK {
		return exitStatus(1)
	}
	return err
}

// deviation is a difference and where it is.
type deviation struct {
	place string // stream, or stream and consumer
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

// changed says what differs no longer.
func changed(before, after []deviation) []string {
	left := map[string]bool{}
	for _, d := range after {
		left[d.place+" "+d.Setting] = true
	}
	var lines []string
	for _, d := range before {
		switch {
		case left[d.place+" "+d.Setting]:
		case d.Have == bus.Absent:
			lines = append(lines, d.place+": created")
		default:
			lines = append(lines, fmt.Sprintf("%s: %s was %s, is %s now", d.place, d.Setting, d.Have, strings.TrimPrefix(d.Want, "at least ")))
		}
	}
	return lines
}

// words says what is not as declared.
func (d deviation) words() string {
	line := fmt.Sprintf("%s: %s is %s, want %s", d.place, d.Setting, d.Have, d.Want)
	if d.Have == bus.Absent {
		line = d.place + ": is absent"
	}
	if d.Failure != "" {
		line += "; NATS cannot change it: " + d.Failure
	}
	return line
}

// printStreams writes streams, readers, what was changed and what differs.
func printStreams(out io.Writer, r *streamsReport, applied bool) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stream\tmessages\tbytes\tmax bytes\toldest\tmax age\twindow\treplicas\tstate")
	for i := range r.Streams {
		s := &r.Streams[i]
		if !s.Found {
			fmt.Fprintf(t, "%s\t-\t-\t%s\t-\t%s\t%s\t%d\tabsent\n", s.Stream, sizeWords(s.Declared.MaxBytes), ageWords(s.Declared.MaxAgeSeconds), ageWords(s.Declared.WindowSeconds), s.Declared.Replicas)
			continue
		}
		oldest := "-"
		if s.OldestAt != nil {
			oldest = ageWords(s.OldestSeconds)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Stream, s.Messages, sizeWords(int64(s.Bytes)), beside(sizeWords(s.Server.MaxBytes), sizeWords(s.Declared.MaxBytes)),
			oldest, beside(ageLimit(s.Server.MaxAgeSeconds), ageLimit(s.Declared.MaxAgeSeconds)), beside(ageWords(s.Server.WindowSeconds), ageWords(s.Declared.WindowSeconds)),
			beside(fmt.Sprint(s.Server.Replicas), fmt.Sprint(s.Declared.Replicas)), stateOf(s.OK))
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
		fmt.Fprintln(out, "\ncourier streams --apply brings the server to what is declared.")
	}
	return nil
}

// printReaders writes how far each reader has come.
func printReaders(out io.Writer, r *streamsReport) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nstream\treader\tpending\tack pending\tredelivered\tstate")
	for i := range r.Streams {
		s := &r.Streams[i]
		for _, c := range s.Consumers {
			state := "follows"
			switch {
			case c.Declared:
				state = stateOf(c.OK)
			case c.Durable:
				state = "not Courier's"
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\n", s.Stream, c.Name, c.Pending, c.AckPending, c.Redelivered, state)
		}
		for _, name := range s.Missing {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\tabsent: made by the store that first reads\n", s.Stream, name)
		}
	}
	return t.Flush()
}

func stateOf(ok bool) string { return map[bool]string{true: "ok", false: "differs"}[ok] }

// beside writes a limit, and what is declared where that is something else.
func beside(have, want string) string {
	if have == want {
		return have
	}
	return fmt.Sprintf("%s (declared %s)", have, want)
}

// sizeWords writes bytes with a binary unit; below 0 there is no limit.
func sizeWords(n int64) string {
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

// ageLimit is ageWords of a limit, of which 0 is none.
func ageLimit(seconds float64) string {
	if seconds <= 0 {
		return "unlimited"
	}
	return ageWords(seconds)
}

// ageWords writes a time with its largest unit, and the next one where that tells.
func ageWords(seconds float64) string {
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
