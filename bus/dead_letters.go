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
	StoredAt time.Time         // by the server's clock
	Digest   string            // sha256 of Data, in hex
	Replayed *schemas.Replayed // nil if it was not replayed
}

// letterKey identifies a letter and its copies: every reader of a message publishes one. The
// digest distinguishes messages with the same sequence in a stream that was created again.
type letterKey struct{ id, digest string }

// LetterQuery selects dead letters; the zero value selects all.
type LetterQuery struct {
	Stream string    // stream of the message, such as "NODE"; "": any
	Since  time.Time // earliest StoredAt
	Reason string    // part of the reason, case-insensitive
}

// Letters returns dead letters without their Data, the oldest first. Of several copies it returns
// the first.
func (b *Bus) Letters(ctx context.Context, q LetterQuery) ([]Letter, error) {
	all, err := b.readDead(ctx)
	known := map[letterKey]bool{}
	reason := strings.ToLower(q.Reason)
	return slices.DeleteFunc(all, func(l Letter) bool {
		key := letterKey{l.EventID, l.Digest}
		if q.Stream != "" && l.Stream != q.Stream || l.StoredAt.Before(q.Since) || known[key] ||
			!strings.Contains(strings.ToLower(l.Reason), reason) {
			return true
		}
		known[key] = true
		return false
	}), err
}

// Letter returns the dead letter at a sequence of the stream DEAD, with its Data and its
// replay, if any. The error matches schemas.ErrNotFound if there is no letter.
func (b *Bus) Letter(ctx context.Context, sequence uint64) (*Letter, error) {
	l, err := b.letterAt(ctx, sequence)
	if err != nil {
		return nil, err
	}
	all, err := b.readDead(ctx)
	for _, read := range all {
		if read.Sequence == sequence {
			l.Replayed = read.Replayed
		}
	}
	return l, err
}

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
	for i, l := range letters {
		letters[i].Replayed = marks[letterKey{l.EventID, l.Digest}]
	}
	return letters, err
}

func (b *Bus) letterAt(ctx context.Context, sequence uint64) (*Letter, error) {
	stream, err := b.stream(ctx, schemas.StreamDead)
	if err != nil {
		return nil, err
	}
	notFound := &schemas.Error{Code: schemas.CodeNotFound, Field: "letter"}
	msg, err := stream.GetMsg(ctx, sequence)
	switch state := stream.CachedInfo().State; {
	case sequence == 0 || errors.Is(err, jetstream.ErrMsgNotFound):
		notFound.Message = fmt.Sprintf(
			"stream %s has no message %d; it holds %d messages, from %d to %d",
			schemas.StreamDead, sequence, state.Msgs, state.FirstSeq, state.LastSeq)
		return nil, notFound
	case err != nil:
		return nil, fmt.Errorf("read %s at %d: %w", schemas.StreamDead, sequence, unavailable(err))
	}
	e, l := parseDead(msg.Subject, msg.Data, msg.Sequence, msg.Time)
	if mark, ok := e.(*schemas.Replayed); ok {
		notFound.Message = fmt.Sprintf("message %d is not a letter: it marks letter %d as replayed",
			sequence, mark.LetterSequence)
		return nil, notFound
	}
	return l, nil
}

// parseDead decodes a message of the stream DEAD: for a mark it returns an event, otherwise a
// letter. A message that is neither becomes a letter about itself, so that it is listed.
func parseDead(subject string, data []byte, sequence uint64, at time.Time) (schemas.Event, *Letter) {
	e, err := schemas.Parse(subject, data)
	l := &Letter{StoredAt: at.UTC()}
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
			Stream:         schemas.StreamDead,
			OriginSequence: sequence,
			OriginSubject:  subject,
			OriginBytes:    len(data),
			Data:           data,
			Reason:         "this is not a dead letter: " + err.Error(),
		}
		l.EventID, l.At = deadID(schemas.StreamDead, sequence), l.StoredAt
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
