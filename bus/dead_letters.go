package bus

import (
	"cmp"
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

// Letter is a dead letter; Dead.Sequence is its place in the stream DEAD.
type Letter struct {
	schemas.Dead
	StoredAt time.Time         // by the server's clock
	Digest   string            // sha256 of Data, in hex
	Copies   int               // letters of the same message in what was read, this one included
	Replayed *schemas.Replayed // nil: not yet
}

// letterKey names a letter and its copies: every reader that meets a message
// writes one. The digest keeps apart the messages of a stream that was made anew
// and counts from 1 again.
type letterKey [sha256.Size]byte

func keyOf(id, digest string) letterKey { return sha256.Sum256([]byte(id + " " + digest)) }

// LetterQuery says which dead letters are wanted; the zero value means all.
type LetterQuery struct {
	Stream string    // of origin, such as "NODE"; "": any
	Since  time.Time // stored then or later
	Reason string    // in the reason, in any case of letters
	Limit  int       // the newest; 0: all
}

// Letters returns dead letters, the newest first, without their Data, and how
// many there are without the limit. Of several copies it returns the first.
func (b *Bus) Letters(ctx context.Context, q LetterQuery) (letters []Letter, total int, err error) {
	marks, err := b.marks(ctx, q.Stream)
	if err != nil {
		return nil, 0, err
	}
	subject := "" // all, to show also what is neither letter nor mark
	if q.Stream != "" {
		subject = schemas.DeadSubject(q.Stream)
	}
	var order []*Letter
	known := map[letterKey]*Letter{} // all that were met, because a copy comes later; nil: beyond the limit
	err = b.deadMessages(ctx, subject, q.Since, func(e schemas.Event, l *Letter) {
		if l == nil {
			return // a mark
		}
		key := keyOf(l.EventID, l.Digest)
		first, met := known[key]
		switch {
		case met && first != nil:
			first.Copies++
		case met:
		case !strings.Contains(strings.ToLower(l.Reason), strings.ToLower(q.Reason)):
		default:
			l.Data, l.Replayed = nil, marks[key]
			known[key] = l
			order = append(order, l)
			if total++; q.Limit > 0 && len(order) > q.Limit {
				known[keyOf(order[0].EventID, order[0].Digest)] = nil
				order = order[1:]
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	for _, l := range slices.Backward(order) {
		letters = append(letters, *l)
	}
	return letters, total, nil
}

// marks reads which letters were replayed. A mark may be older than a copy of
// its letter, so all are read.
func (b *Bus) marks(ctx context.Context, stream string) (map[letterKey]*schemas.Replayed, error) {
	all := map[letterKey]*schemas.Replayed{}
	err := b.deadMessages(ctx, schemas.DeadReplayedSubject(cmp.Or(stream, "*")), time.Time{}, func(e schemas.Event, _ *Letter) {
		if mark, ok := e.(*schemas.Replayed); ok {
			all[keyOf(mark.LetterID, mark.DataDigest)] = mark
		}
	})
	return all, err
}

// Letter returns the dead letter at a place in the stream DEAD, with its Data
// and whether it was replayed. The error matches schemas.ErrNotFound where none is.
func (b *Bus) Letter(ctx context.Context, sequence uint64) (*Letter, error) {
	l, err := b.letterAt(ctx, sequence)
	if err != nil {
		return nil, err
	}
	marks, err := b.marks(ctx, l.Stream)
	if err != nil {
		return nil, err
	}
	l.Replayed = marks[keyOf(l.EventID, l.Digest)]
	return l, nil
}

// letterAt reads one letter and nothing else.
func (b *Bus) letterAt(ctx context.Context, sequence uint64) (*Letter, error) {
	stream, err := b.js.Stream(ctx, schemas.StreamDead)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", schemas.StreamDead, unavailable(err))
	}
	none := &schemas.Error{Code: schemas.CodeNotFound, Field: "letter"}
	msg, err := stream.GetMsg(ctx, sequence)
	switch state := stream.CachedInfo().State; {
	case sequence == 0 || errors.Is(err, jetstream.ErrMsgNotFound):
		none.Message = fmt.Sprintf("the stream %s has no %d; it holds %d messages, from %d to %d", schemas.StreamDead, sequence, state.Msgs, state.FirstSeq, state.LastSeq)
		return nil, none
	case err != nil:
		return nil, fmt.Errorf("read %s at %d: %w", schemas.StreamDead, sequence, unavailable(err))
	}
	e, l := parseDead(msg.Subject, msg.Data, msg.Sequence, msg.Time)
	if mark, ok := e.(*schemas.Replayed); ok {
		none.Message = fmt.Sprintf("%d is the mark that letter %d was replayed", sequence, mark.LetterSequence)
		return nil, none
	}
	return l, nil
}

// parseDead reads a message of the stream DEAD: a mark, or else a letter. What
// somebody put there that is neither is a letter of its own, so that it is seen.
func parseDead(subject string, data []byte, sequence uint64, at time.Time) (schemas.Event, *Letter) {
	e, err := schemas.Parse(subject, data)
	l := &Letter{StoredAt: at.UTC(), Copies: 1}
	switch e := e.(type) {
	case *schemas.Replayed:
		return e, nil
	case *schemas.Dead:
		l.Dead = *e
	default:
		if err == nil {
			err = fmt.Errorf("%q is no subject of dead letters", subject)
		}
		l.Dead = schemas.Dead{Stream: schemas.StreamDead, OriginSequence: sequence, OriginSubject: subject, Data: data, OriginBytes: len(data),
			Reason: "this is not a dead letter: " + err.Error()}
		l.EventID, l.At = deadID(schemas.StreamDead, sequence), l.StoredAt
	}
	l.Sequence = sequence
	digest := sha256.Sum256(l.Data)
	l.Digest = hex.EncodeToString(digest[:])
	return e, l
}

// deadMessages visits the messages of a subject ("": of any) of the stream DEAD in
// order, from those stored at since, up to the last one of now: what is written meanwhile
// may be an answer to the visit.
func (b *Bus) deadMessages(ctx context.Context, subject string, since time.Time, visit func(schemas.Event, *Letter)) error {
	fail := func(err error) error {
		return fmt.Errorf("read the stream %s: %w", schemas.StreamDead, unavailable(err))
	}
	last, err := b.LastSequence(ctx, schemas.StreamDead)
	if err != nil {
		return err
	}
	from := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, InactiveThreshold: orphanAge}
	if subject != "" {
		from.FilterSubjects = []string{subject}
	}
	if !since.IsZero() {
		from.DeliverPolicy, from.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	consumer, err := b.js.OrderedConsumer(ctx, schemas.StreamDead, from)
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
			e, l := parseDead(msg.Subject(), msg.Data(), meta.Sequence.Stream, meta.Timestamp)
			visit(e, l)
		}
		if meta.NumPending == 0 || meta.Sequence.Stream >= last {
			return nil
		}
	}
}

// deadID is the identity of the letter of a message.
func deadID(stream string, sequence uint64) string {
	return fmt.Sprintf("%s/%d/dead", stream, sequence)
}
