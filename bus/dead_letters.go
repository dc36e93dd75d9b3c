package bus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
type letterKey [sha256.Size]byte

func newLetterKey(id, digest string) letterKey {
	return sha256.Sum256([]byte(id + " " + digest))
}

func (l *Letter) key() letterKey { return newLetterKey(l.EventID, l.Digest) }

// LetterQuery selects dead letters; the zero value selects all.
type LetterQuery struct {
	Stream string    // stream of the message, such as "NODE"; "": any
	Since  time.Time // earliest StoredAt
	Reason string    // part of the reason, case-insensitive
}

// Letters returns dead letters without their Data, the oldest first. Of several copies it returns
// the first.
func (b *Bus) Letters(ctx context.Context, q LetterQuery) ([]Letter, error) {
	marks, err := b.replayMarks(ctx, q.Stream)
	if err != nil {
		return nil, err
	}
	subject := "" // any, to include messages that are neither letter nor mark
	if q.Stream != "" {
		subject = schemas.DeadSubject(q.Stream)
	}

	var letters []Letter
	known := map[letterKey]bool{}
	reason := strings.ToLower(q.Reason)
	err = b.visitDead(ctx, subject, q.Since, func(_ schemas.Event, l *Letter) {
		if l == nil {
			return // a mark
		}
		key := l.key()
		if known[key] || !strings.Contains(strings.ToLower(l.Reason), reason) {
			return
		}
		known[key] = true
		l.Data, l.Replayed = nil, marks[key]
		letters = append(letters, *l)
	})
	return letters, err
}

// replayMarks reads the marks of replayed letters. It reads all marks, because a mark may be
// older than a copy of its letter.
func (b *Bus) replayMarks(ctx context.Context, stream string) (map[letterKey]*schemas.Replayed, error) {
	all := map[letterKey]*schemas.Replayed{}
	subject := schemas.DeadReplayedSubject(cmp.Or(stream, "*"))
	err := b.visitDead(ctx, subject, time.Time{}, func(e schemas.Event, _ *Letter) {
		if mark, ok := e.(*schemas.Replayed); ok {
			all[newLetterKey(mark.LetterID, mark.DataDigest)] = mark
		}
	})
	return all, err
}

// Letter returns the dead letter at a sequence of the stream DEAD, with its Data and its
// replay, if any. The error matches schemas.ErrNotFound if there is no letter.
func (b *Bus) Letter(ctx context.Context, sequence uint64) (*Letter, error) {
	l, err := b.letterAt(ctx, sequence)
	if err != nil {
		return nil, err
	}
	marks, err := b.replayMarks(ctx, l.Stream)
	if err != nil {
		return nil, err
	}
	l.Replayed = marks[l.key()]
	return l, nil
}

// letterAt reads one letter without its replay mark.
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

// visitDead visits the messages of a subject ("": any) of the stream DEAD in order, from the
// first one stored at since or later to the last one at the time of the call. It excludes later
// messages, because visit may publish some.
func (b *Bus) visitDead(
	ctx context.Context, subject string, since time.Time, visit func(schemas.Event, *Letter),
) error {
	fail := func(err error) error {
		return fmt.Errorf("read the stream %s: %w", schemas.StreamDead, unavailable(err))
	}
	last, err := b.LastSequence(ctx, schemas.StreamDead)
	if err != nil {
		return err
	}
	config := jetstream.OrderedConsumerConfig{
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		InactiveThreshold: orphanAge,
	}
	if subject != "" {
		config.FilterSubjects = []string{subject}
	}
	if !since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	consumer, err := b.js.OrderedConsumer(ctx, schemas.StreamDead, config)
	if err != nil {
		return fail(err)
	}
	defer b.deleteConsumer(schemas.StreamDead, consumer)
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	it, err := consumer.Messages()
	if err != nil {
		return fail(err)
	}
	defer it.Stop()
	for {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fail(err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fail(err)
		}
		if meta.Sequence.Stream <= last {
			visit(parseDead(msg.Subject(), msg.Data(), meta.Sequence.Stream, meta.Timestamp))
		}
		if meta.NumPending == 0 || meta.Sequence.Stream >= last {
			return nil
		}
	}
}
