package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Batch is an exact range of a stream.
type Batch struct {
	Stream      string
	First       uint64   // first sequence
	Last        uint64   // last sequence
	Records     []Record // in order, without the messages that could not be decoded
	Bytes       int      // size in the log of the messages that were accepted
	Token       string   // identifies the stream and the range
	Redelivered bool     // the batch may have been handled before, wholly or in part
}

// BatchOptions limits the size and age of a batch.
type BatchOptions struct {
	// MaxMessages limits messages and events of a batch; the last message may exceed the
	// number of events. With Accept it limits those that are accepted, and the range of a batch
	// has at most twice as many. Default and maximum: schemas.MaxBatchMessages.
	MaxMessages int

	// MaxAge limits the time since the first message. Default: one second.
	MaxAge time.Duration

	// Accept, if set, selects messages by their subject. The other messages belong to the range
	// of their batch, but are not decoded, and are no records. It must return the same for a
	// repeated batch. With Accept, the handler also gets batches without records.
	Accept func(subject string) bool

	// Rewound, if set, is called with the first sequence of the stream after a call of Rewind,
	// before the batches from there on. It is called again until it succeeds.
	Rewound func(ctx context.Context, first uint64) error
}

type batcher struct {
	*Bus
	durable   schemas.Durable
	options   BatchOptions
	handle    func(context.Context, Batch) error
	intent    intent
	revision  uint64 // of the intent
	replay    string // intent.Replay when the consumption began
	succeeded bool   // a batch was handled since the last failure
	lastSize  int    // records of the previous batch; owned by the gathering goroutine
}

// ConsumeBatch passes the messages of a durable's stream to handle in exact ranges until ctx
// ends. It records the intent to handle a range before each call. After the end of ctx it
// finishes the current batch and returns nil. It recovers by itself from any failure of the
// server.
func (b *Bus) ConsumeBatch(
	ctx context.Context, d schemas.Durable, o BatchOptions,
	handle func(context.Context, Batch) error,
) error {
	if o.MaxMessages <= 0 || o.MaxMessages > schemas.MaxBatchMessages {
		o.MaxMessages = schemas.MaxBatchMessages
	}
	if o.MaxAge <= 0 {
		o.MaxAge = time.Second
	}
	r := &batcher{Bus: b, durable: d, options: o, handle: handle}
	for attempt := 0; ; attempt++ {
		r.succeeded = false
		err := r.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if r.succeeded {
			attempt = 0
		}
		retry := retryAfter(min(attempt, 1)) // short, because an attempt is cheap
		b.log.Warn("batches restart after a failure",
			"stream", d.Stream, "retry_seconds", retry.Seconds(), "error", err)
		if Sleep(ctx, retry) != nil {
			return nil
		}
	}
}

// run starts again after Rewind, or repeats the batch of an open intent, then consumes the durable.
func (r *batcher) run(ctx context.Context) error {
	var err error
	if r.intent, r.revision, err = r.readIntent(ctx, r.durable); err != nil {
		return err
	}
	r.replay = r.intent.Replay
	if r.intent.Rewound {
		if err := r.startAgain(ctx); err != nil {
			return err
		}
	}
	if !r.intent.Done && r.intent.Last > 0 {
		if err := r.repeat(ctx); err != nil {
			return err
		}
		r.succeeded = true
	}
	config := durableConfig(r.durable)
	consumer, err := r.js.CreateOrUpdateConsumer(ctx, r.durable.Stream, config)
	if err != nil {
		return fmt.Errorf("create durable %s: %w", r.durable.Name, unavailable(err))
	}
	p, err := newPuller(consumer, r.options.MaxMessages)
	if err != nil {
		return fmt.Errorf("consume durable %s: %w", r.durable.Name, err)
	}
	defer p.close()
	return r.consume(ctx, p)
}

// consume gathers the next batch while the current one is being handled.
func (r *batcher) consume(ctx context.Context, p *puller) error {
	batches, abandoned := make(chan gatheredBatch), make(chan struct{})
	gathering := make(chan error, 1)
	after := logPosition{r.intent.Last, r.intent.At}
	go func() {
		defer close(batches)
		gathering <- r.gatherAll(ctx, p, after, batches, abandoned)
	}()

	var failed error
	for g := range batches {
		if failed == nil { // after a failure the remaining batches are gathered again
			if failed = r.commit(ctx, g); failed != nil {
				close(abandoned)
			} else {
				r.succeeded = true
			}
		}
	}

	err := <-gathering
	if reset := (streamReset{}); failed == nil && errors.As(err, &reset) {
		return r.restartAt(ctx, reset.sequence)
	}
	return errors.Join(failed, err)
}

// gatherAll sends batches of the messages after a position, until ctx ends and no message is
// left, or abandoned is closed.
func (r *batcher) gatherAll(
	ctx context.Context, p *puller, after logPosition,
	batches chan<- gatheredBatch, abandoned <-chan struct{},
) error {
	for ctx.Err() == nil || !p.isEmpty {
		g, err := r.gather(ctx, p, after)
		if err != nil {
			return err
		}
		if g.count > 0 {
			after = logPosition{g.batch.Last, g.at}
		}
		g.batch.setToken(r.replay)
		select {
		case batches <- g:
		case <-abandoned:
			return nil
		}
	}
	return nil
}

// setToken sets the token of a complete batch. It differs after Rewind.
func (b *Batch) setToken(replay string) {
	b.Token = fmt.Sprintf("%s%s/%d-%d", replay, b.Stream, b.First, b.Last)
}

func (r *batcher) commit(ctx context.Context, g gatheredBatch) error {
	ctx, cancel := finishContext(ctx)
	defer cancel()
	if g.count > 0 {
		if err := r.writeIntent(ctx, g.intent()); err != nil {
			return err
		}
		if err := r.finish(ctx, g.batchBuilder); err != nil {
			return err
		}
	}
	if g.last == nil {
		return nil
	}
	// The acknowledgement needs no confirmation: the intent records the progress, and the next
	// acknowledgement covers all messages before it.
	if err := g.last.Ack(); err != nil {
		return fmt.Errorf("ack %s: %w", r.durable.Name, unavailable(err))
	}
	return nil
}

// finish calls the handler until it succeeds, then marks the intent as done.
func (r *batcher) finish(ctx context.Context, c *batchBuilder) error {
	for attempt := 0; len(c.batch.Records) > 0 || r.options.Accept != nil; attempt++ {
		err := r.handle(ctx, c.batch)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return err
		}
		r.metrics.repeated.WithLabelValues(r.durable.Stream).Inc()
		r.log.Warn("batch is handled again after a failure", "stream", r.durable.Stream,
			"first", c.batch.First, "last", c.batch.Last, "attempt", attempt+1, "error", err)
		c.batch.Redelivered = true
		if err := Sleep(ctx, retryAfter(attempt)); err != nil {
			return err
		}
	}
	done := r.intent
	done.Done = true
	return r.writeIntent(ctx, done)
}

// finishTimeout bounds the time to finish the current batch after the end of a context.
const finishTimeout = 8 * time.Second

// finishContext returns a context that ends finishTimeout after ctx. If ctx belongs to a lease
// that is lost, it ends at once, because another process may then write.
func finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopLoss := afterLoss(ctx, func() { cancel(errLeaseLost) })
	stopEnd := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(finishTimeout, func() { cancel(nil) })
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() { stopLoss(); stopEnd(); cancel(nil) }
}

func retryAfter(attempt int) time.Duration {
	delays := schemas.RedeliveryDelays()
	return delays[min(attempt, len(delays)-1)]
}

func durableConfig(d schemas.Durable) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: d.Name, AckPolicy: jetstream.AckAllPolicy, AckWait: d.AckWait, MaxAckPending: d.MaxAckPending,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
}
