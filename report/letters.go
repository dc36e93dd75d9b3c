package report

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"courier/bus"
	"courier/schemas"
)

// LetterReplays are the outcomes of replaying dead letters, as JSON.
type LetterReplays struct {
	Replays []LetterReplay   `json:"replays"`
	Counts  map[bus.Fate]int `json:"counts"`
	DryRun  bool             `json:"dry_run"`
}

// LetterReplay is the outcome of replaying a dead letter.
type LetterReplay struct {
	Letter         uint64   `json:"letter_sequence"`
	Stream         string   `json:"stream"`
	OriginSequence uint64   `json:"origin_sequence"`
	OriginSubject  string   `json:"origin_subject"`
	Fate           bus.Fate `json:"fate"`               // one of the constants of bus, or FateOpen
	Sequence       uint64   `json:"sequence,omitempty"` // of the event in stream
	EventID        string   `json:"replayed_id,omitempty"`
	Reason         string   `json:"reason,omitempty"`
}

// FateOpen is the fate of a letter whose replay failed midway; it must be replayed again.
const FateOpen bus.Fate = "open"

// Text describes the outcome in a line.
func (r *LetterReplay) Text() string {
	line := fmt.Sprintf("%d  %s %d %s: ", r.Letter, r.Stream, r.OriginSequence, r.OriginSubject)
	switch r.Fate {
	case bus.FateReplayed:
		line += fmt.Sprintf("replayed as %s %d", r.Stream, r.Sequence)
	case bus.FateAlreadyStored:
		line += fmt.Sprintf("exists already as %s %d; marked as replayed", r.Stream, r.Sequence)
	case bus.FateAlreadyReplayed:
		line += fmt.Sprintf("was replayed before as %s %d", r.Stream, r.Sequence)
	case bus.FateReplayable:
		line += fmt.Sprintf("can be replayed as event %s", r.EventID)
	case FateOpen:
		line += "not completed, replay it again: " + r.Reason
	default:
		line += "refused: " + r.Reason
	}
	return schemas.OneLine(line)
}

// ReplayLetters replays letters one after another, or only checks that they can be. It writes the
// outcome of each to out at once, also of one whose replay failed midway; without out the result
// lists them. After an error it returns the outcomes so far.
func ReplayLetters(
	ctx context.Context, b *bus.Bus, letters []bus.Letter, dryRun bool, out io.Writer,
) (*LetterReplays, error) {
	all := &LetterReplays{Replays: []LetterReplay{}, Counts: map[bus.Fate]int{}, DryRun: dryRun}
	for i := range letters {
		l := &letters[i]
		r, failure := b.Replay(ctx, l, dryRun)
		if failure != nil {
			r.Fate, r.Reason = FateOpen, failure.Error()
		}
		l.Data = nil
		all.Counts[r.Fate]++
		one := LetterReplay{
			Letter:         l.Sequence,
			Stream:         l.Stream,
			OriginSequence: l.OriginSequence,
			OriginSubject:  l.OriginSubject,
			Fate:           r.Fate,
			Sequence:       r.Sequence,
			EventID:        r.EventID,
			Reason:         r.Reason,
		}
		if out == nil {
			all.Replays = append(all.Replays, one)
		} else if _, err := fmt.Fprintln(out, one.Text()); err != nil {
			return all, err
		}
		if failure != nil {
			return all, failure
		}
	}
	return all, nil
}

// WriteCounts writes the number of letters with each outcome.
func (r *LetterReplays) WriteCounts(out io.Writer) {
	var parts []string
	for _, fate := range slices.Sorted(maps.Keys(r.Counts)) {
		words := strings.ReplaceAll(string(fate), "_", " ")
		parts = append(parts, fmt.Sprintf("%d %s", r.Counts[fate], words))
	}
	if len(parts) == 0 {
		parts = []string{"no letter is left to replay"}
	}
	fmt.Fprintln(out, strings.Join(parts, ", "))
}
