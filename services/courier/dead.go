package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/report"
	"courier/schemas"
)

type deadCommand struct {
	Replay deadReplay `cmd:"" help:"Publish the original bytes of dead letters again, once they can be decoded."`
}

// deadTimeout bounds reading the stream DEAD.
const deadTimeout = time.Minute

type deadReplay struct {
	natsFlags
	outputFlags
	Letters []uint64      `arg:"" optional:"" name:"letter" help:"Sequences of the letters in the stream DEAD."`
	All     bool          `help:"Replay all letters that were not replayed yet, oldest first; combine with --stream, --since and --reason."`
	Stream  string        `help:"Only letters of this stream, such as NODE." placeholder:"STREAM"`
	Since   time.Duration `help:"Only letters of this most recent period, such as 24h." placeholder:"TIME"`
	Reason  string        `help:"Only letters with this text in their reason." placeholder:"TEXT"`
	DryRun  bool          `help:"Only report what would happen."`
}

// Run replays one letter after the other.
func (c *deadReplay) Run(w *environment) error {
	q, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if err := c.check(q); err != nil {
		return err
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	letters, err := c.letters(w.ctx, b, q)
	if err != nil {
		return err
	}
	var each io.Writer
	if c.Output != "json" {
		each = w.stdout
	}
	r, err := report.ReplayLetters(w.ctx, b, letters, c.DryRun, each)
	if err := errors.Join(err, c.print(w.stdout, r, r.WriteCounts)); err != nil {
		return err
	}
	if r.Counts[bus.FateRefused] > 0 {
		return exitStatus(1)
	}
	return nil
}

// query validates the flags that select letters.
func (c *deadReplay) query(now time.Time) (bus.LetterQuery, error) {
	q := bus.LetterQuery{Stream: strings.ToUpper(c.Stream), Reason: c.Reason}
	if c.Since < 0 {
		return q, schemas.Invalid("since", "%s is negative; want a period such as 24h", c.Since)
	}
	if c.Since > 0 {
		q.Since = now.Add(-c.Since)
	}
	var names []string
	for _, s := range schemas.Streams() {
		names = append(names, s.Name)
	}
	if q.Stream != "" && !slices.Contains(names, q.Stream) {
		return q, schemas.Invalid("stream", "%q is not one of %v", c.Stream, names)
	}
	return q, nil
}

func (c *deadReplay) check(q bus.LetterQuery) error {
	switch {
	case !c.All && len(c.Letters) == 0:
		return schemas.Invalid("letter",
			"missing: give sequences of the stream DEAD, or --all")
	case c.All && len(c.Letters) > 0:
		return schemas.Invalid("all",
			"cannot be combined with %d given letters", len(c.Letters))
	case !c.All && (q.Stream != "" || q.Reason != "" || !q.Since.IsZero()):
		return schemas.Invalid("all", "missing: --stream, --since and --reason require it")
	}
	return nil
}

// letters returns the letters to replay, oldest first. It reads all of them before the first
// replay, so that a message that becomes a dead letter again is not replayed twice.
func (c *deadReplay) letters(
	ctx context.Context, b *bus.Bus, q bus.LetterQuery,
) ([]bus.Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, deadTimeout)
	defer cancel()
	if c.All {
		all, err := b.Letters(ctx, q)
		return slices.DeleteFunc(all, func(l bus.Letter) bool { return l.Replayed != nil }), err
	}
	var all []bus.Letter
	for _, sequence := range c.Letters {
		if slices.ContainsFunc(all, func(l bus.Letter) bool { return l.Sequence == sequence }) {
			continue // given twice
		}
		l, err := b.Letter(ctx, sequence)
		if err != nil {
			return nil, err
		}
		all = append(all, *l)
	}
	return all, nil
}
