package bus

import (
	"context"
	"encoding/json"
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
}

func (r *batcher) loadIntent(ctx context.Context) (err error) {
	r.kv, r.intent, r.revision, err = r.readIntent(ctx, r.durable)
	return err
}

// readIntent reads the intent of a durable and its revision. If the durable has none yet, both
// are zero.
func (b *Bus) readIntent(
	ctx context.Context, d schemas.Durable,
) (kv jetstream.KeyValue, i intent, revision uint64, err error) {
	kv, err = b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		err = fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
		return nil, i, 0, err
	}
	entry, err := kv.Get(ctx, d.Name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return kv, i, 0, nil
	}
	if err != nil {
		return kv, i, 0, fmt.Errorf("read intent %s: %w", d.Name, unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), &i); err != nil {
		return kv, intent{}, 0, fmt.Errorf("read intent %s: %w", d.Name, err)
	}
	return kv, i, entry.Revision(), nil
}

// writeIntent changes the intent by compare-and-set.
func (r *batcher) writeIntent(ctx context.Context, i intent) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	revision, err := r.kv.Update(ctx, r.durable.Name, data, r.revision)
	if err != nil {
		return fmt.Errorf("write intent %s (does another store consume this stream?): %w",
			r.durable.Name, unavailable(err))
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
	r.log.Info("unfinished batch is handled again",
		"stream", stream, "first", open.First, "last", open.Last)

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
	c.batch.setToken()
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
	err := r.js.DeleteConsumer(ctx, r.durable.Stream, r.durable.Name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("delete durable %s: %w", r.durable.Name, unavailable(err))
	}
	return fmt.Errorf("the log was truncated, for example by a power cut, or created again: "+
		"new messages from %d on, although the messages up to %d were handled",
		sequence, handled)
}
