package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"courier/schemas"
)

// stored is a message of a stream, as its leader tells it.
type stored struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"seq"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}

// storedFrom returns the first message of a stream at a sequence or after it, over
// what was deleted; nil if there is none. It asks the leader: what a direct get does
// not find, a replica may only not have yet.
func (b *Bus) storedFrom(ctx context.Context, stream string, sequence uint64) (*stored, error) {
	msg, err := b.storedAt(ctx, stream, map[string]any{"seq": sequence, "next_by_subj": ">"})
	if err != nil {
		return nil, fmt.Errorf("read %s at %d: %w", stream, sequence, err)
	}
	return msg, nil
}

// storedLast returns the last message of a subject from the leader of a stream; nil if
// there is none.
func (b *Bus) storedLast(ctx context.Context, stream, subject string) (*stored, error) {
	msg, err := b.storedAt(ctx, stream, map[string]any{"last_by_subj": subject})
	if err != nil {
		return nil, fmt.Errorf("read the last message of %s: %w", subject, err)
	}
	return msg, nil
}

// storedAt returns the message that the leader of a stream finds for a request of the
// JetStream API; nil if there is none.
func (b *Bus) storedAt(ctx context.Context, stream string, q map[string]any) (*stored, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	subject := "$JS.API.STREAM.MSG.GET." + stream
	ctx, done := b.permitted(ctx, subject)
	msg, err := b.nc.RequestWithContext(ctx, subject, request)
	if err = done(err); err != nil {
		return nil, unavailable(err)
	}
	var reply struct {
		Message *stored `json:"message"`
		Error   *struct {
			Number      int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return nil, err
	}
	const notFound = 10037 // JSNoMessageFoundErr of nats-server
	if e := reply.Error; e != nil && e.Number != notFound {
		return nil, errors.New(e.Description)
	}
	return reply.Message, nil
}

const (
	storedTimeout  = 5 * time.Second        // after which nobody leads the stream
	storedPause    = 100 * time.Millisecond // before one is asked again that has less than there is
	storedPatience = 50                     // times that it is asked
)

// errShort says that a stream ends before a message that it once had.
var errShort = errors.New("the stream ends before that")

// storedRange hands over what a stream has of a range of sequences, the last of which
// it was told to have. That there is no more is believed of a leader that had the last
// before it was asked, and leads still: one that was elected a moment ago may have yet
// to read what it was sent.
func (b *Bus) storedRange(ctx context.Context, stream string, first, last uint64, each func(*stored) error) error {
	led, had := "", false
	for tries := 0; first <= last; {
		msg, err := b.storedFrom(ctx, stream, first)
		if err != nil {
			return err
		}
		if msg != nil {
			if msg.Sequence > last {
				return nil
			}
			if err := each(msg); err != nil {
				return err
			}
			first, had = msg.Sequence+1, false
			continue
		}
		s, err := b.js.Stream(ctx, stream)
		if err != nil {
			return fmt.Errorf("open stream %s: %w", stream, unavailable(err))
		}
		leader := ""
		if c := s.CachedInfo().Cluster; c != nil {
			leader = c.Leader
		}
		if had && leader == led {
			return nil
		}
		if led, had = leader, s.CachedInfo().State.LastSeq >= last; had {
			continue
		}
		if tries++; tries == storedPatience {
			return fmt.Errorf("read %s from %d to %d: %w: %w", stream, first, last, &schemas.Error{Code: schemas.CodeUnavailable, Message: "it is not there yet"}, errShort)
		}
		if err := wait(ctx, storedPause); err != nil {
			return err
		}
	}
	return nil
}
