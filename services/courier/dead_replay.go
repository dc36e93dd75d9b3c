package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"courier/bus"
	"courier/report"
	"courier/schemas"
)

type deadReplay struct {
	natsFlags
	outputFlags
	letterFlags
	Letters []uint64 `arg:"" optional:"" name:"letter" help:"Numbers of the letters, from courier dead list."`
	All     bool     `help:"Replay all letters that were not replayed yet, oldest first; combine with --stream, --since and --reason."`
	DryRun  bool     `help:"Only report what would happen."`
}

// Help returns the end of the help text.
func (c *deadReplay) Help() string {
	return `Publishes the original bytes on their original subject with the ID of their event, so that no event
counts twice, and then marks the letter as replayed. Letters that still cannot be decoded and
truncated ones are refused. The exit status is 1 if a letter was refused.

Examples:
  courier dead replay 4 7
  courier dead replay --all --stream NODE --dry-run`
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
	if !c.DryRun {
		if err := markable(w.ctx, b); err != nil {
			return err
		}
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

func (c *deadReplay) check(q bus.LetterQuery) error {
	switch {
	case !c.All && len(c.Letters) == 0:
		return schemas.Invalid("letter",
			"missing: give numbers from courier dead list, or --all")
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
		all, _, err := b.Letters(ctx, q)
		all = slices.DeleteFunc(all, func(l bus.Letter) bool { return l.Replayed != nil })
		slices.Reverse(all)
		return all, err
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

// markable returns an error if the server cannot store the marks of replayed letters.
func markable(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, streamsTimeout)
	defer cancel()
	states, err := b.Streams(ctx)
	if err != nil {
		return err
	}
	if difference := report.StreamDifference(
		states, schemas.StreamDead, "subjects",
	); difference != "" {
		return fmt.Errorf("replayed letters could not be marked: %s;"+
			" run courier streams --apply", difference)
	}
	return nil
}
