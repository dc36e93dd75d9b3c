package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Letter is a dead letter. Dead.Sequence is its sequence in the stream DEAD.
type Letter struct {
	schemas.Dead
	Digest   string            // sha256 of Data, in hex
	Replayed *schemas.Replayed // nil if it was not replayed
}

// letterKey identifies a letter and its copies: every reader of a message publishes one. The
// digest distinguishes messages with the same sequence in a stream that was created again.
type letterKey struct{ id, digest string }

// Letters returns the dead letters at the given sequences of the stream DEAD, without their Data, the
// oldest first. Without sequences it returns all letters, but only the first of several copies. The error
// matches schemas.ErrNotFound if there is no letter at a sequence.
func (b *Bus) Letters(ctx context.Context, sequences ...uint64) ([]Letter, error) {
	all, err := b.readDead(ctx)
	if err != nil {
		return nil, err
	}
	for _, sequence := range sequences {
		if !slices.ContainsFunc(all, func(l Letter) bool { return l.Sequence == sequence }) {
			message := fmt.Sprintf("stream %s has no letter %d", schemas.StreamDead, sequence)
			return nil, &schemas.Error{Code: schemas.CodeNotFound, Field: "letter", Message: message}
		}
	}
	known := map[letterKey]bool{}
	return slices.DeleteFunc(all, func(l Letter) bool {
		if len(sequences) > 0 {
			return !slices.Contains(sequences, l.Sequence)
		}
		isCopy := known[l.key()]
		known[l.key()] = true
		return isCopy
	}), nil
}

func (l *Letter) key() letterKey { return letterKey{l.EventID, l.Digest} }

// readDead reads all letters, without their Data. A mark of a replay also holds for the copies of its
// letter, which may be newer.
func (b *Bus) readDead(ctx context.Context) (letters []Letter, err error) {
	last, err := b.LastSequence(ctx, schemas.StreamDead)
	if err != nil || last == 0 {
		return nil, err
	}
	marks := map[letterKey]*schemas.Replayed{}
	visit := func(m storedMessage) {
		e, l := parseDead(m.Subject, m.Data, m.Sequence, m.Time)
		if mark, ok := e.(*schemas.Replayed); ok {
			marks[letterKey{mark.LetterID, mark.DataDigest}] = mark
			return
		}
		l.Data = nil
		letters = append(letters, *l)
	}
	err = b.Read(ctx, FollowOptions{Stream: schemas.StreamDead, Until: last, undecoded: visit}, nil)
	for i := range letters {
		letters[i].Replayed = marks[letters[i].key()]
	}
	return letters, err
}

// parseDead decodes a message of the stream DEAD: for a mark it returns an event, otherwise a
// letter. A message that is neither becomes a letter about itself, so that it is listed.
func parseDead(subject string, data []byte, sequence uint64, at time.Time) (schemas.Event, *Letter) {
	e, err := schemas.Parse(subject, data)
	l := &Letter{}
	switch e := e.(type) {
	case *schemas.Replayed:
		return e, nil
	case *schemas.Dead:
		l.Dead = *e
	default:
		if err == nil {
			err = fmt.Errorf("%q is not a subject of dead letters", subject)
		}
		l.Dead = schemas.Dead{
			Stream: schemas.StreamDead, OriginSequence: sequence, OriginSubject: subject,
			OriginBytes: len(data), Data: data, Reason: "this is not a dead letter: " + err.Error(),
		}
		l.EventID, l.At = deadID(schemas.StreamDead, sequence), at.UTC()
	}
	l.Sequence = sequence
	digest := sha256.Sum256(l.Data)
	l.Digest = hex.EncodeToString(digest[:])
	return e, l
}

// Fate is the outcome of a replay.
type Fate string

// Outcomes of a replay.
const (
	FateReplayed        Fate = "replayed"        // its bytes were published again
	FateAlreadyStored   Fate = "stored_before"   // the log has the event already; the letter is marked
	FateAlreadyReplayed Fate = "replayed_before" // an earlier replay has published it
	FateRefused         Fate = "refused"         // it cannot be replayed now
	FateReplayable      Fate = "replayable"      // it can be replayed; nothing was done
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

// replayable returns what Replay would do, as far as that depends on the letter alone:
// FateReplayable, FateAlreadyReplayed or FateRefused. It reads the Data of the letter.
func (b *Bus) replayable(ctx context.Context, l *Letter) (Replay, error) {
	if m := l.Replayed; m != nil {
		r := Replay{
			Fate:     FateAlreadyReplayed,
			Sequence: m.ReplayedSequence,
			EventID:  m.ReplayedID,
		}
		return r, nil
	}
	msg, err := b.nextStored(ctx, schemas.StreamDead, l.Sequence)
	if err != nil {
		return Replay{}, err
	}
	if msg == nil || msg.Sequence != l.Sequence {
		return refusedReplay("", "its stream has dropped it in the meantime"), nil
	}
	_, whole := parseDead(msg.Subject, msg.Data, msg.Sequence, msg.Time)
	if whole == nil || whole.key() != l.key() {
		return refusedReplay("", "stream %s was created again in the meantime", schemas.StreamDead), nil
	}
	l.Data = whole.Data
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
// but is not marked. With isDryRun nothing is published.
func (b *Bus) Replay(ctx context.Context, l *Letter, isDryRun bool) (Replay, error) {
	r, err := b.replayable(ctx, l)
	if err != nil || r.Fate != FateReplayable || isDryRun {
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
