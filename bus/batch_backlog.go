package bus

import (
	"context"
	"time"

	"courier/schemas"
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
