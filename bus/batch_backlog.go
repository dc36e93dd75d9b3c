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

// Backlog is what a stream holds that ConsumeBatch has not handled to the end.
type Backlog struct {
	Done     uint64    // sequence up to which all is handled
	Messages uint64    // sequences behind it
	Oldest   time.Time // when the first of them was stored, by the server's clock; zero if there is none
}

// Backlog tells how far a durable's batches are behind its stream, from the
// intents: what a consumer was sent, or has acknowledged, says less.
func (b *Bus) Backlog(ctx context.Context, d schemas.Durable) (Backlog, error) {
	fail := func(err error) (Backlog, error) {
		return Backlog{}, fmt.Errorf("look at the backlog of %s: %w", d.Name, unavailable(err))
	}
	_, i, _, err := b.intentOf(ctx, d)
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
	if done = max(done, state.FirstSeq-min(state.FirstSeq, 1)); state.LastSeq <= done {
		return Backlog{Done: done}, nil
	}
	msg, err := b.storedFrom(ctx, d.Stream, done+1)
	if err != nil {
		return fail(err)
	}
	if msg == nil {
		return Backlog{Done: done}, nil
	}
	return Backlog{Done: done, Messages: state.LastSeq - done, Oldest: msg.Time}, nil
}

// Followed reports whether somebody takes a durable's messages now: it is looked
// at for a second, because between two batches nobody waits for any.
func (b *Bus) Followed(ctx context.Context, d schemas.Durable) (bool, error) {
	const looks, pause = 10, 100 * time.Millisecond
	for range looks {
		consumer, err := b.js.Consumer(ctx, d.Stream, d.Name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look at durable %s: %w", d.Name, unavailable(err))
		}
		if consumer.CachedInfo().NumWaiting > 0 {
			return true, nil
		}
		if err := wait(ctx, pause); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Rewind makes a durable's batches begin again with the first message that the
// stream keeps, and returns that one's sequence and the last one's; last is
// first-1 if it keeps none. Whoever follows it loses his turn at his next batch.
func (b *Bus) Rewind(ctx context.Context, d schemas.Durable) (first, last uint64, err error) {
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
	if err := stream.DeleteConsumer(ctx, d.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fail(err)
	}
	return max(state.FirstSeq, 1), state.LastSeq, nil
}
