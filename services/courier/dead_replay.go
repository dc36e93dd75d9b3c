package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

type deadReplay struct {
	natsFlags
	outputFlags
	letterFlags
	Letters []uint64 `arg:"" optional:"" name:"letter" help:"Of the letters, as courier dead list shows them."`
	All     bool     `help:"All that were not replayed yet, the oldest first; --stream, --since and --reason choose among them."`
	DryRun  bool     `help:"Only say what would come of it."`
}

// Help is the rest of what --help says.
func (c *deadReplay) Help() string {
	return "Publishes the original bytes on their origin subject, under the identity that their event has, so that nothing counts twice; then marks the letter. " +
		"What still cannot be understood is refused with the reason, and so is what was cut. The exit status is 1 when something was refused."
}

// replayReport is what courier dead replay -o json prints.
type replayReport struct {
	Replays []letterReplay   `json:"replays"`
	Counts  map[bus.Fate]int `json:"counts"`
	DryRun  bool             `json:"dry_run"`
}

// letterReplay is what came of a letter.
type letterReplay struct {
	Letter         uint64   `json:"letter_sequence"`
	Stream         string   `json:"stream"`
	OriginSequence uint64   `json:"origin_sequence"`
	OriginSubject  string   `json:"origin_subject"`
	Fate           bus.Fate `json:"fate"`               // "replayed", "there", "before", "refused", "replayable" or "open"
	Sequence       uint64   `json:"sequence,omitempty"` // of the event in stream
	EventID        string   `json:"replayed_id,omitempty"`
	Reason         string   `json:"reason,omitempty"`
}

// Run replays one letter after the other.
func (c *deadReplay) Run(w *world) error {
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
	report, err := c.replay(w, b, letters)
	print := printCounts
	if c.Output == "json" {
		print = func(out io.Writer, r *replayReport) error { return indented(out, r) }
	}
	if err := errors.Join(err, print(w.stdout, report)); err != nil {
		return err
	}
	if report.Counts[bus.FateRefused] > 0 {
		return exitStatus(1)
	}
	return nil
}

func (c *deadReplay) check(q bus.LetterQuery) error {
	switch {
	case !c.All && len(c.Letters) == 0:
		return schemas.Invalid("letter", "is missing: name letters as courier dead list shows them, or --all")
	case c.All && len(c.Letters) > 0:
		return schemas.Invalid("all", "is not for %d letters that are named; want one or the other", len(c.Letters))
	case !c.All && (q.Stream != "" || q.Reason != "" || !q.Since.IsZero()):
		return schemas.Invalid("all", "is missing: --stream, --since and --reason choose among all")
	}
	return nil
}

// letters finds what is to be replayed, in the order in which it died. They are
// known before the first is replayed: what a reader buries again is not met twice.
func (c *deadReplay) letters(ctx context.Context, b *bus.Bus, q bus.LetterQuery) ([]bus.Letter, error) {
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
			continue // named twice
		}
		l, err := b.Letter(ctx, sequence)
		if err != nil {
			return nil, err
		}
		all = append(all, *l)
	}
	return all, nil
}

// markable refuses to begin where no mark could be written.
func markable(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, streamsTimeout)
	defer cancel()
	states, err := b.Streams(ctx)
	if err != nil {
		return err
	}
	for _, d := range deviations(states) {
		if d.place == schemas.StreamDead && (d.Setting == "subjects" || d.Have == bus.Absent) {
			return fmt.Errorf("nothing is replayed, because it could not be marked: %s; courier streams --apply repairs that", d.words())
		}
	}
	return nil
}

// replay tells of each letter as it goes, also of one that an error stopped midway.
func (c *deadReplay) replay(w *world, b *bus.Bus, letters []bus.Letter) (*replayReport, error) {
	act := b.Replay
	if c.DryRun {
		act = b.Replayable
	}
	report := &replayReport{Replays: []letterReplay{}, Counts: map[bus.Fate]int{}, DryRun: c.DryRun}
	for i := range letters {
		l := &letters[i]
		r, failed := act(w.ctx, l)
		if failed != nil {
			r.Fate, r.Reason = fateOpen, failed.Error()
		}
		l.Data = nil
		report.Counts[r.Fate]++
		one := letterReplay{l.Sequence, l.Stream, l.OriginSequence, l.OriginSubject, r.Fate, r.Sequence, r.EventID, r.Reason}
		if c.Output == "json" {
			report.Replays = append(report.Replays, one)
		} else if _, err := fmt.Fprintln(w.stdout, one.words()); err != nil {
			return report, err
		}
		if failed != nil {
			return report, failed
		}
	}
	return report, nil
}

// fateOpen is the fate of a letter whose replay failed midway: it is replayed again.
const fateOpen bus.Fate = "open"

// words says what came of a letter.
func (r *letterReplay) words() string {
	line := fmt.Sprintf("%d  %s %d %s: ", r.Letter, r.Stream, r.OriginSequence, r.OriginSubject)
	switch r.Fate {
	case bus.FateReplayed:
		line += fmt.Sprintf("replayed as %s %d", r.Stream, r.Sequence)
	case bus.FateAlreadyStored:
		line += fmt.Sprintf("is there already as %s %d; marked as replayed", r.Stream, r.Sequence)
	case bus.FateAlreadyReplayed:
		line += fmt.Sprintf("was replayed before as %s %d", r.Stream, r.Sequence)
	case bus.FateReplayable:
		line += fmt.Sprintf("can be replayed as event %s", r.EventID)
	case fateOpen:
		line += "still open, replay it again: " + r.Reason
	default:
		line += "refused: " + r.Reason
	}
	return tame(line)
}

// printCounts writes how many letters had which fate.
func printCounts(out io.Writer, r *replayReport) error {
	var parts []string
	for _, kind := range []struct {
		fate  bus.Fate
		words string
	}{{bus.FateReplayed, "replayed"}, {bus.FateAlreadyStored, "there already"}, {bus.FateAlreadyReplayed, "replayed before"}, {bus.FateReplayable, "can be replayed"}, {bus.FateRefused, "refused"}, {fateOpen, "still open"}} {
		if n := r.Counts[kind.fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.words))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no letter is left to replay"}
	}
	_, err := fmt.Fprintln(out, strings.Join(parts, ", "))
	return err
}
