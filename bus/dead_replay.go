package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Fate is the outcome of a replay.
type Fate string

// Outcomes of a replay.
const (
	FateReplayed        Fate = "replayed"   // its bytes were published again
	FateAlreadyStored   Fate = "there"      // the log has the event already; the letter is marked
	FateAlreadyReplayed Fate = "before"     // an earlier replay has published it
	FateRefused         Fate = "refused"    // it cannot be replayed now
	FateReplayable      Fate = "replayable" // it can be replayed; nothing was done
)

// Replay describes the outcome of a replay.
type Replay struct {
	Fate     Fate
	Sequence uint64 // of the event in its stream, if it is stored
	EventID  string // of the event, if it can be decoded; for samples schemas.MessageID
	Reason   string // for FateRefused
}

func refusedReplay(eventID, format string, args ...any) Replay {
	return Replay{Fate: FateRefused, EventID: eventID, Reason: fmt.Sprintf(format, args...)}
}

// Replayable returns what Replay would do, as far as that depends on the letter alone:
// FateReplayable, FateAlreadyReplayed or FateRefused.
func (b *Bus) Replayable(ctx context.Context, l *Letter) (Replay, error) {
	if m := l.Replayed; m != nil {
		r := Replay{
			Fate:     FateAlreadyReplayed,
			Sequence: m.ReplayedSequence,
			EventID:  m.ReplayedID,
		}
		return r, nil
	}
	if l.Data == nil {
		whole, err := b.letterAt(ctx, l.Sequence)
		if errors.Is(err, schemas.ErrNotFound) {
			return refusedReplay("", "its stream has dropped it in the meantime"), nil
		}
		if err != nil {
			return Replay{}, err
		}
		l.Data = whole.Data
	}
	return checkLetter(l), nil
}

// checkLetter reports whether the decoder accepts the bytes of a letter now.
func checkLetter(l *Letter) Replay {
	if l.Truncated() {
		return refusedReplay("",
			"the letter was cut to %d bytes of %d; stream %s may still have the message at %d",
			len(l.Data), l.OriginBytes, l.Stream, l.OriginSequence)
	}
	events, err := schemas.ParseAll(l.OriginSubject, l.Data)
	if err != nil {
		return refusedReplay("", "still cannot be decoded: %v", err)
	}
	return Replay{Fate: FateReplayable, EventID: schemas.MessageID(events)}
}

// Replay publishes the bytes of a dead letter on their original subject, with the identity of
// their event, and then publishes a mark for the letter and its copies. The letter stays.
//
// If the process crashes before the mark, the letter stays open. The next Replay then finds the
// event in the stream's duplicate window. After that window it publishes a duplicate, which every
// reader recognizes by its event_id. If Replay returns an error, the letter may have been replayed
// but is not marked.
func (b *Bus) Replay(ctx context.Context, l *Letter) (Replay, error) {
	r, err := b.Replayable(ctx, l)
	if err != nil || r.Fate != FateReplayable {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()

	ack, err := b.send(ctx, l.OriginSubject, l.Data,
		jetstream.WithMsgID(r.EventID), jetstream.WithExpectStream(l.Stream))
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return refusedReplay(r.EventID, "no stream stores %s now", l.OriginSubject), nil
	case errors.As(err, &refused):
		return refusedReplay(r.EventID, "stream %s rejects it: %s", l.Stream, refused.Description), nil
	case err != nil:
		return r, fmt.Errorf("replay letter %d: %w", l.Sequence, unavailable(err))
	case ack.Duplicate && ack.Sequence == l.OriginSequence:
		return refusedReplay(r.EventID,
			"stream %s takes it for a duplicate of its original; replay it again in %s",
			l.Stream, duplicateWindow(l.Stream)), nil
	}

	r.Fate, r.Sequence = FateReplayed, ack.Sequence
	if ack.Duplicate {
		r.Fate = FateAlreadyStored
	}
	if l.Replayed, err = b.markReplayed(ctx, l, r); err != nil {
		return r, fmt.Errorf(
			"letter %d is %s as %s %d, but not marked; replay it again to mark it: %w",
			l.Sequence, r.Fate, l.Stream, r.Sequence, err)
	}
	return r, nil
}

func (b *Bus) markReplayed(ctx context.Context, l *Letter, r Replay) (*schemas.Replayed, error) {
	m := &schemas.Replayed{
		Stream:           l.Stream,
		OriginSequence:   l.OriginSequence,
		LetterID:         l.EventID,
		LetterSequence:   l.Sequence,
		DataDigest:       l.Digest,
		ReplayedID:       r.EventID,
		ReplayedSequence: r.Sequence,
	}
	m.EventID = fmt.Sprintf("%s/%d/replayed", schemas.StreamDead, l.Sequence)
	m.At = time.Now().UTC()
	_, err := b.Publish(ctx, m)
	return m, err
}

func duplicateWindow(stream string) string {
	for _, s := range schemas.Streams() {
		if strings.EqualFold(s.Name, stream) {
			return schemas.FormatSeconds(s.Duplicates.Seconds())
		}
	}
	return "a few minutes"
}
