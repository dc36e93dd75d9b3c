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
	fail := func(err error) (Backlog, error) {
		return Backlog{}, fmt.Errorf("read the backlog of %s: %w", d.Name, unavailable(err))
	}
	_, i, _, err := b.readIntent(ctx, d)
	if err != nil {
		return Backlog{}, err
	}
	done := i.Last
	if !i.Done && i.First > 0 {
		done = i.First - 1
	}
	stream, err := b.js.Stream(ctx, d.Stream)
	if err != nil {
		return fail(err)
	}
	state := stream.CachedInfo().State
	removed := state.FirstSeq - min(state.FirstSeq, 1) // by the stream's limits
	if done = max(done, removed); state.LastSeq <= done {
		return Backlog{Done: done}, nil
	}
	msg, err := b.nextStored(ctx, d.Stream, done+1)
	if err != nil {
		return fail(err)
	}
	if msg == nil {
		return Backlog{Done: done}, nil
	}
	return Backlog{Done: done, Messages: state.LastSeq - done, Oldest: msg.Time}, nil
}

// HasReader reports whether a process consumes a durable, or holds a lease of its name if there is no
// such consumer. It checks for a second, because a consumer has no open pull request between two
// batches; a lease is checked until it was renewed, or expired.
func (b *Bus) HasReader(ctx context.Context, d schemas.Durable) (bool, error) {
	const checks, pause = 10, 100 * time.Millisecond
	for range checks {
		consumer, err := b.js.Consumer(ctx, d.Stream, d.Name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return b.isHeld(ctx, d.Name)
		}
		if err != nil {
			return false, fmt.Errorf("inspect durable %s: %w", d.Name, unavailable(err))
		}
		if consumer.CachedInfo().NumWaiting > 0 {
			return true, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Rewind makes a durable's batches start again at the first message of the stream. It returns
// the first and last sequence of the stream; last is first-1 if the stream is empty. A process
// that consumes the durable fails at its next batch.
func (b *Bus) Rewind(
	ctx context.Context, d schemas.Durable,
) (first, last uint64, err error) {
	fail := func(err error) (uint64, uint64, error) {
		return 0, 0, fmt.Errorf("rewind durable %s: %w", d.Name, unavailable(err))
	}
	stream, err := b.js.Stream(ctx, d.Stream)
	if err != nil {
		return fail(err)
	}
	state := stream.CachedInfo().State
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return fail(err)
	}
	data, err := json.Marshal(intent{Done: true})
	if err != nil {
		return fail(err)
	}
	if _, err := kv.Put(ctx, d.Name, data); err != nil {
		return fail(err)
	}
	err = stream.DeleteConsumer(ctx, d.Name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fail(err)
	}
	return max(state.FirstSeq, 1), state.LastSeq, nil
}

// StartAfter makes a durable's batches start after a sequence. A range from there to last that
// is not empty is handled first, as a batch that may have been handled before. No process may
// consume the durable.
func (b *Bus) StartAfter(ctx context.Context, d schemas.Durable, done, last uint64) error {
	i := intent{First: done, Last: done, Done: true}
	if last > done {
		i = intent{First: done + 1, Last: last}
	}
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err == nil {
		_, err = kv.Put(ctx, d.Name, data)
	}
	if err != nil {
		return fmt.Errorf("start durable %s: %w", d.Name, unavailable(err))
	}
	return nil
}
