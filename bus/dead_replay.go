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

// Fate is what came of a dead letter that was to be replayed.
type Fate string

// Fates of a replay.
const (
	FateReplayed   Fate = "replayed"   // its bytes are in the log again
	FateThere      Fate = "there"      // the log has had the event since: nothing was added, and the letter is marked
	FateBefore     Fate = "before"     // it was replayed before
	FateRefused    Fate = "refused"    // it cannot be replayed now
	FateReplayable Fate = "replayable" // it could be: nothing was done
)

// Replay is a dead letter's way back.
type Replay struct {
	Fate     Fate
	Sequence uint64 // of the event in its stream, where it is there
	EventID  string // of the event, where it can be understood; of several samples schemas.MessageID
	Reason   string // of a refusal
}

// Replayable tells what Replay would do now, as far as the letter alone decides
// it: FateReplayable, FateBefore or FateRefused.
func (b *Bus) Replayable(ctx context.Context, l *Letter) (Replay, error) {
	if l.Replayed != nil {
		return Replay{Fate: FateBefore, Sequence: l.Replayed.ReplayedSequence, EventID: l.Replayed.ReplayedID}, nil
	}
	if l.Data == nil {
		whole, err := b.letterAt(ctx, l.Sequence)
		if errors.Is(err, schemas.ErrNotFound) {
			return Replay{Fate: FateRefused, Reason: "its stream has dropped it meanwhile"}, nil
		}
		if err != nil {
			return Replay{}, err
		}
		l.Data = whole.Data
	}
	return judgeLetter(l), nil
}

// judgeLetter asks the decoder that refused the bytes whether it takes them now.
func judgeLetter(l *Letter) Replay {
	if l.Cut() {
		whole := ""
		if l.OriginBytes > 0 {
			whole = fmt.Sprintf(" of %d", l.OriginBytes)
		}
		return Replay{Fate: FateRefused, Reason: fmt.Sprintf("the letter was cut: it has the first %d bytes%s; the whole may still lie in %s at %d", len(l.Data), whole, l.Stream, l.OriginSequence)}
	}
	events, err := schemas.ParseAll(l.OriginSubject, l.Data)
	if err != nil {
		return Replay{Fate: FateRefused, Reason: "still not understood: " + err.Error()}
	}
	return Replay{Fate: FateReplayable, EventID: schemas.MessageID(events)}
}

// Replay publishes the bytes of a dead letter on their origin subject again,
// under the identity that their event has, and then marks the letter by an
// event. A letter is not deleted: the mark says what became of it, also of its
// copies. Killed between the two, the letter is open still, and the next Replay
// finds the event in the stream's window; after that window it publishes a copy
// that every reader knows by its event_id. So nothing is lost, and nothing counts
// twice. An error means that the letter may be replayed, and not marked.
func (b *Bus) Replay(ctx context.Context, l *Letter) (Replay, error) {
	r, err := b.Replayable(ctx, l)
	if err != nil || r.Fate != FateReplayable {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := b.send(ctx, l.OriginSubject, l.Data, jetstream.WithMsgID(r.EventID), jetstream.WithExpectStream(homeOf(l)))
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return Replay{Fate: FateRefused, EventID: r.EventID, Reason: "no stream keeps " + l.OriginSubject + " now"}, nil
	case errors.As(err, &refused):
		return Replay{Fate: FateRefused, EventID: r.EventID, Reason: fmt.Sprintf("the stream %s refuses it: %s", homeOf(l), refused.Description)}, nil
	case err != nil:
		return r, fmt.Errorf("replay letter %d: %w", l.Sequence, unavailable(err))
	case ack.Duplicate && ack.Sequence == l.OriginSequence && homeOf(l) == l.Stream:
		return Replay{Fate: FateRefused, EventID: r.EventID, Reason: fmt.Sprintf("%s still takes it for a copy of its original, which came a moment ago; replay it again in %s", l.Stream, window(l.Stream))}, nil
	}
	r.Fate, r.Sequence = FateReplayed, ack.Sequence
	if ack.Duplicate {
		r.Fate = FateThere
	}
	if l.Replayed, err = b.mark(ctx, l, r); err != nil {
		return r, fmt.Errorf("letter %d is %s as %s %d, but not marked (replay it again to mark it): %w", l.Sequence, r.Fate, l.Stream, r.Sequence, err)
	}
	return r, nil
}

// homeOf returns the stream that stores the subject of a letter now: its own, unless the letter is
// an advice that was stored in JOB before advice had a stream of its own.
func homeOf(l *Letter) string {
	advice := schemas.JobSubject("*", schemas.EventAdvice)
	if l.Stream == schemas.StreamJob && passes(advice, l.OriginSubject) {
		return schemas.StreamAdvice
	}
	return l.Stream
}

// mark records that a letter was replayed.
func (b *Bus) mark(ctx context.Context, l *Letter, r Replay) (*schemas.Replayed, error) {
	m := &schemas.Replayed{Stream: l.Stream, OriginSequence: l.OriginSequence, LetterID: l.EventID, LetterSequence: l.Sequence, DataDigest: l.Digest,
		ReplayedID: r.EventID, ReplayedSequence: r.Sequence}
	m.EventID, m.At = fmt.Sprintf("%s/%d/replayed", schemas.StreamDead, l.Sequence), time.Now().UTC()
	_, err := b.Publish(ctx, m)
	return m, err
}

// window is how long a stream remembers identities.
func window(stream string) string {
	for _, s := range schemas.Streams() {
		if strings.EqualFold(s.Name, stream) {
			return spanWords(s.Duplicates)
		}
	}
	return "a few minutes"
}
