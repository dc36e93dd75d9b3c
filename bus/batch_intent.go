package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// intent is the range of the batch that is being handled, or was handled last. It is recorded
// before the handler is called. It alone decides how far a stream was handled; the
// acknowledgements of the durable do not.
type intent struct {
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
	At    time.Time `json:"at,omitzero"` // when the last message was stored
	Count int       `json:"count"`       // messages in the range, dead ones included
	Done  bool      `json:"done"`

	// Replay distinguishes the tokens of batches after the last call of Rewind from earlier ones;
	// "" before the first call. Rewound is set until BatchOptions.Rewound has succeeded.
	Replay  string `json:"replay,omitempty"`
	Rewound bool   `json:"rewound,omitempty"`
}

// readIntent reads the intent of a durable and its revision; both are zero if there is none.
func (b *Bus) readIntent(ctx context.Context, d schemas.Durable) (i intent, revision uint64, err error) {
	revision, err = b.readKey(ctx, schemas.BucketIntents, d.Name, &i)
	return i, revision, err
}

func (r *batcher) writeIntent(ctx context.Context, i intent) error {
	i.Replay = r.intent.Replay
	name := r.durable.Name
	revision, err := r.writeKey(ctx, schemas.BucketIntents, name, i, r.revision)
	if err != nil {
		return fmt.Errorf("write intent %s (does another store consume this stream, "+
			"or rebuild its tables?): %w", name, err)
	}
	r.intent, r.revision = i, revision
	return nil
}

// repeat handles the range of an open intent again. It reads the range from the stream, so the
// batch has the same messages in the same order. It writes the intent first: a process that
// still handles the batch then fails to close it.
func (r *batcher) repeat(ctx context.Context) error {
	if err := r.writeIntent(ctx, r.intent); err != nil {
		return err
	}
	stream, open := r.durable.Stream, r.intent
	r.metrics.repeated.WithLabelValues(stream).Inc()
	r.log.Info("unfinished batch is handled again", "stream", stream, "first", open.First, "last", open.Last)

	c := r.newBuilder(true)
	err := r.visitStored(ctx, stream, open.First, open.Last, func(msg *storedMessage) error {
		return c.add(ctx, msg.Subject, msg.Data, msg.Sequence, msg.Time)
	})
	if err != nil && !errors.Is(err, errStreamShorter) {
		return err
	}
	if got := c.intent(); got.Count != open.Count {
		r.log.Warn("unfinished batch lost messages to the limits of its stream or its truncation",
			"stream", stream, "first", open.First, "have", got.Count, "want", open.Count)
	}
	c.batch.First, c.batch.Last = open.First, open.Last
	c.batch.setToken(r.replay)
	ctx, cancel := finishContext(ctx)
	defer cancel()
	return r.finish(ctx, c)
}

// restartAt makes the message at sequence the next one to handle, and returns an error that
// explains the restart. It deletes the durable, which would withhold messages that it has
// delivered.
func (r *batcher) restartAt(ctx context.Context, sequence uint64) error {
	handled := r.intent.Last
	done := intent{First: sequence - 1, Last: sequence - 1, Done: true}
	if err := r.writeIntent(ctx, done); err != nil {
		return err
	}
	if err := r.deleteDurable(ctx, r.durable); err != nil {
		return err
	}
	return fmt.Errorf("the log was truncated, for example by a power cut, or created again: "+
		"new messages from %d on, although the messages up to %d were handled",
		sequence, handled)
}

// deleteDurable deletes a durable. A process that consumes it starts again by its intent.
func (b *Bus) deleteDurable(ctx context.Context, d schemas.Durable) error {
	err := b.js.DeleteConsumer(ctx, d.Stream, d.Name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("delete durable %s: %w", d.Name, unavailable(err))
	}
	return nil
}

// Rewind makes the batches of a durable start again at the first message of its stream, also if a
// process consumes it: that one calls BatchOptions.Rewound, and then handles the messages again. It
// returns the last sequence of the stream.
func (b *Bus) Rewind(ctx context.Context, d schemas.Durable) (last uint64, err error) {
	rewound := intent{Done: true, Rewound: true, Replay: rand.Text() + "/"}
	for { // until no batch has written its intent in between
		_, revision, err := b.readIntent(ctx, d)
		if err != nil {
			return 0, err
		}
		_, err = b.writeKey(ctx, schemas.BucketIntents, d.Name, rewound, revision)
		if err == nil {
			break
		}
		if !errors.Is(err, schemas.ErrConflict) {
			return 0, fmt.Errorf("rewind durable %s: %w", d.Name, err)
		}
	}
	if err := b.deleteDurable(ctx, d); err != nil {
		return 0, err
	}
	return b.LastSequence(ctx, d.Stream)
}

// startAgain prepares the batches after Rewind. The durable would not deliver what was acknowledged.
func (r *batcher) startAgain(ctx context.Context) error {
	if err := r.deleteDurable(ctx, r.durable); err != nil {
		return err
	}
	stream, err := r.stream(ctx, r.durable.Stream)
	if err != nil {
		return err
	}
	if r.options.Rewound != nil {
		ctx, cancel := finishContext(ctx)
		defer cancel()
		if err := r.options.Rewound(ctx, max(1, stream.CachedInfo().State.FirstSeq)); err != nil {
			return err
		}
	}
	r.log.Info("the stream is handled again from its start", "stream", r.durable.Stream)
	return r.writeIntent(ctx, intent{Done: true})
}

// Backlog describes the messages of a stream that ConsumeBatch has not handled.
type Backlog struct {
	Done     uint64 // last sequence up to which every message is handled
	Messages uint64 // sequences after Done

	// Oldest is when the first message after Done was stored, by the server's clock; zero if
	// there is none.
	Oldest time.Time
}

// Backlog returns how far a durable's batches are behind its stream. It reads the intent of
// the durable, because acknowledgements may lag behind it.
func (b *Bus) Backlog(ctx context.Context, d schemas.Durable) (Backlog, error) {
	i, _, err := b.readIntent(ctx, d)
	if err != nil {
		return Backlog{}, err
	}
	done := i.Last
	if !i.Done && i.First > 0 {
		done = i.First - 1
	}
	stream, err := b.stream(ctx, d.Stream)
	if err != nil {
		return Backlog{}, err
	}
	state := stream.CachedInfo().State
	removed := state.FirstSeq - min(state.FirstSeq, 1) // by the stream's limits
	if done = max(done, removed); state.LastSeq <= done {
		return Backlog{Done: done}, nil
	}
	msg, err := b.nextStored(ctx, d.Stream, done+1)
	if err != nil || msg == nil {
		return Backlog{Done: done}, err
	}
	return Backlog{Done: done, Messages: state.LastSeq - done, Oldest: msg.Time}, nil
}
