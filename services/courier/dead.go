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

// deadTimeout bounds reading the stream DEAD.
const deadTimeout = time.Minute

type deadCommand struct {
	natsFlags
	outputFlags
	Action  string   `arg:"" help:"replay: publish the original bytes of dead letters again, once they can be decoded." enum:"replay"`
	Letters []uint64 `arg:"" optional:"" name:"letter" help:"Sequences of the letters in the stream DEAD."`
	All     bool     `help:"Replay all letters that were not replayed yet, oldest first."`
	DryRun  bool     `help:"Only report what would happen."`
}

// Run replays one letter after the other.
func (c *deadCommand) Run(w *environment) error {
	switch {
	case !c.All && len(c.Letters) == 0:
		return schemas.Invalid("letter", "missing: give sequences of the stream DEAD, or --all")
	case c.All && len(c.Letters) > 0:
		return schemas.Invalid("all", "cannot be combined with %d given letters", len(c.Letters))
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	letters, err := c.letters(w.ctx, b)
	if err != nil {
		return err
	}
	var each io.Writer
	if c.Output == "table" {
		each = w.stdout
	}
	r, err := report.ReplayLetters(w.ctx, b, letters, c.DryRun, each)
	if err := errors.Join(err, c.print(w, r, r.WriteCounts)); err != nil {
		return err
	}
	if r.Counts[bus.FateRefused] > 0 {
		refused := schemas.FormatCount(uint64(r.Counts[bus.FateRefused]), "letter")
		return notMet{fmt.Errorf("%s refused again", refused)}
	}
	return nil
}

// letters returns the letters to replay, oldest first. It reads all of them before the first
// replay, so that a message that becomes a dead letter again is not replayed twice.
func (c *deadCommand) letters(ctx context.Context, b *bus.Bus) ([]bus.Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, deadTimeout)
	defer cancel()
	all, err := b.Letters(ctx, c.Letters...)
	return slices.DeleteFunc(all, func(l bus.Letter) bool { return c.All && l.Replayed != nil }), err
}
