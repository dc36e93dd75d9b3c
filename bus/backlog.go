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
	Messages uint64    // sequences behind the last finished batch
	Oldest   time.Time // when the first of them was stored, by the server's clock; zero if there is none
}

// Backlog tells how far a durable's batches are behind its stream, from the
// intents: what a consumer was sent, or has acknowledged, says less.
func (b *Bus) Backlog(ctx context.Context, d schemas.Durable) (Backlog, error) {
	fail := func(err error) (Backlog, error) {
		return Backlog{}, fmt.Errorf("look at the backlog of %s: %w", d.Name, unavailable(err))
	}
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return fail(err)
	}
	var i intent
	entry, err := kv.Get(ctx, d.Name)
	if err == nil {
		err = json.Unmarshal(entry.Value(), &i)
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fail(err)
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
		return Backlog{}, nil
	}
	msg, err := stream.GetMsg(ctx, done+1, jetstream.WithGetMsgSubject(">")) // over what was deleted
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Backlog{}, nil
	}
	if err != nil {
		return fail(err)
	}
	return Backlog{Messages: state.LastSeq - done, Oldest: msg.Time}, nil
}
