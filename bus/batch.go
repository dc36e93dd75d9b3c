package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Batch is an exact range of a stream.
type Batch struct {
	Stream   string
	First    uint64   // first sequence
	Last     uint64   // last sequence
	Records  []Record // in order; those that could not be understood are missing
	Bytes    int      // of its messages in the log, dead ones included
	Token    string   // names the stream and the range: the same batch, the same token
	Repeated bool     // it may have been handled before, wholly or in part

	Ahead io.Closer // what BatchOptions.Prepare left for the first attempt to handle it, and is closed after it
}

// BatchOptions says when a batch is full.
type BatchOptions struct {
	MaxMessages int           // and most events, but those of the last message; default and most: schemas.MaxBatchMessages
	MaxAge      time.Duration // from its first message; default one second

	// Prepare, if given, is called with each new batch, perhaps while the one before is
	// handled: so it changes nothing that others see. It may set Ahead.
	Prepare func(context.Context, *Batch)
}

// intent is what is recorded before a batch is handled: the truth about how far
// a stream was handled, whatever the durable's acknowledgements say.
type intent struct {
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
	At    time.Time `json:"at,omitzero"` // when the last message was stored
	Count int       `json:"count"`       // messages in the range, dead ones included
	Done  bool      `json:"done"`
}

// batcher is one run of ConsumeBatch.
type batcher struct {
	*Bus
	d        schemas.Durable
	o        BatchOptions
	handle   func(context.Context, Batch) error
	kv       jetstream.KeyValue
	intent   intent
	revision uint64
	well     bool // something succeeded since the last failure
	usual    int  // records of the last batch; of who gathers
}

// ConsumeBatch hands the messages of a durable's stream to handle in exact
// ranges, each after its intent was recorded, until ctx ends; what is in hand is
// finished first. It returns nil then, and goes on by itself after any failure
// of the server.
func (b *Bus) ConsumeBatch(ctx context.Context, d schemas.Durable, o BatchOptions, handle func(context.Context, Batch) error) error {
	if o.MaxMessages <= 0 || o.MaxMessages > schemas.MaxBatchMessages {
		o.MaxMessages = schemas.MaxBatchMessages
	}
	if o.MaxAge <= 0 {
		o.MaxAge = time.Second
	}
	r := &batcher{Bus: b, d: d, o: o, handle: handle}
	for attempt := 0; ; attempt++ {
		r.well = false
		err := r.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if r.well {
			attempt = 0 // a failure of its own, whatever was before
		}
		retry := delay(min(attempt, 1)) // to look again costs little
		b.log.Warn("batches start again", "stream", d.Stream, "retry_seconds", retry.Seconds(), "error", err)
		if wait(ctx, retry) != nil {
			return nil
		}
	}
}

// run repeats an open intent, then turns the durable into batches.
func (r *batcher) run(ctx context.Context) error {
	if err := r.readIntent(ctx); err != nil {
		return err
	}
	if !r.intent.Done && r.intent.Last > 0 {
		if err := r.repeat(ctx); err != nil {
			return err
		}
		r.well = true
	}
	if _, err := r.js.CreateOrUpdateConsumer(ctx, r.d.Stream, durableConfig(r.d)); err != nil {
		return fmt.Errorf("create durable %s: %w", r.d.Name, unavailable(err))
	}
	p, err := r.pull(r.d, r.o.MaxMessages)
	if err != nil {
		return err
	}
	defer p.close()
	return r.relay(ctx, p)
}

// relay gathers one batch while the one before it is handled.
func (r *batcher) relay(ctx context.Context, p *puller) error {
	batches, abandoned, ended := make(chan gathered), make(chan struct{}), make(chan error, 1)
	after := place{r.intent.Last, r.intent.At}
	go func() {
		defer close(batches)
		ended <- func() error {
			for ctx.Err() == nil || p.more() {
				g, err := r.gather(ctx, p, after)
				if err != nil {
					return err
				}
				if g.count > 0 {
					after = place{g.batch.Last, g.at}
				}
				r.prepare(ctx, &g.batch)
				select {
				case batches <- g:
				case <-abandoned:
					g.batch.putDown()
					return nil
				}
			}
			return nil
		}()
	}()
	var failed error
	for g := range batches {
		if failed == nil { // else it comes again
			if failed = r.settle(ctx, g); failed != nil {
				close(abandoned)
			} else {
				r.well = true
			}
		}
		g.batch.putDown()
	}
	err := <-ended
	if begun := (anew{}); failed == nil && errors.As(err, &begun) {
		return r.startAgain(ctx, begun.sequence)
	}
	return errors.Join(failed, err)
}

// name gives a batch its token.
func (b *Batch) name() { b.Token = fmt.Sprintf("%s/%d-%d", b.Stream, b.First, b.Last) }

// prepare lets who handles batches prepare one.
func (r *batcher) prepare(ctx context.Context, b *Batch) {
	b.name()
	if len(b.Records) > 0 && r.o.Prepare != nil {
		r.o.Prepare(ctx, b)
	}
}

// putDown ends what was prepared for a batch.
func (b *Batch) putDown() {
	if b.Ahead != nil {
		_ = b.Ahead.Close() // whatever it says, nobody uses it any more
		b.Ahead = nil
	}
}

func (r *batcher) readIntent(ctx context.Context) (err error) {
	r.kv, r.intent, r.revision, err = r.intentOf(ctx, r.d)
	return err
}

// intentOf reads the intent of a durable, the zero one if it has none yet, and its revision.
func (b *Bus) intentOf(ctx context.Context, d schemas.Durable) (kv jetstream.KeyValue, i intent, revision uint64, err error) {
	kv, err = b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return nil, i, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
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

// writeIntent changes the intent if nobody else did meanwhile.
func (r *batcher) writeIntent(ctx context.Context, i intent) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	revision, err := r.kv.Update(ctx, r.d.Name, data, r.revision)
	if err != nil {
		return fmt.Errorf("write intent %s (another store on this stream?): %w", r.d.Name, unavailable(err))
	}
	r.intent, r.revision = i, revision
	return nil
}

// repeat handles the range of an open intent again, read from the stream itself
// so that it has the same messages in the same order. It writes the intent first:
// a process that had the batch in hand, and still runs, can no longer close it.
func (r *batcher) repeat(ctx context.Context) error {
	if err := r.writeIntent(ctx, r.intent); err != nil {
		return err
	}
	r.metrics.retried.WithLabelValues(r.d.Stream).Inc()
	r.log.Info("open batch is repeated", "stream", r.d.Stream, "first", r.intent.First, "last", r.intent.Last)
	c := r.collect(true)
	err := r.storedRange(ctx, r.d.Stream, r.intent.First, r.intent.Last, func(msg *stored) error {
		return c.add(ctx, msg.Subject, msg.Data, msg.Sequence, msg.Time)
	})
	if err != nil && !errors.Is(err, errShort) { // short: the log lost its end, or was thrown away
		return err
	}
	if got := c.intent(); got.Count != r.intent.Count {
		r.log.Warn("a repeated batch lost messages: its stream's limits took them, or the stream its end", "stream", r.d.Stream, "first", r.intent.First, "have", got.Count, "want", r.intent.Count)
	}
	c.batch.First, c.batch.Last = r.intent.First, r.intent.Last
	c.batch.name()
	ctx, cancel := finishContext(ctx)
	defer cancel()
	return r.finish(ctx, c)
}

// settle records the intent of a batch, handles it and acknowledges it.
func (r *batcher) settle(ctx context.Context, g gathered) error {
	ctx, cancel := finishContext(ctx)
	defer cancel()
	if g.count > 0 {
		if err := r.writeIntent(ctx, g.intent()); err != nil {
			return err
		}
		if err := r.finish(ctx, g.collector); err != nil {
			return err
		}
	}
	if g.ack == "" {
		return nil
	}
	// Nobody waits for the answer: the intent says how far the stream was handled, and
	// the next acknowledgement is for all before it as well.
	if err := r.nc.Publish(g.ack, []byte("+ACK")); err != nil {
		return fmt.Errorf("ack %s: %w", r.d.Name, unavailable(err))
	}
	return nil
}

// startAgain takes a message for the first that was not handled, and returns an
// error. The durable is made anew: it keeps back for long what it has delivered.
func (r *batcher) startAgain(ctx context.Context, sequence uint64) error {
	handled := r.intent.Last
	if err := r.writeIntent(ctx, intent{First: sequence - 1, Last: sequence - 1, Done: true}); err != nil {
		return err
	}
	if err := r.js.DeleteConsumer(ctx, r.d.Stream, r.d.Name); err != nil {
		return fmt.Errorf("delete durable %s: %w", r.d.Name, unavailable(err))
	}
	return fmt.Errorf("the log has other messages from %d on than those that were handled up to %d: it lost them, as by a power cut, or began again", sequence, handled)
}

// grace is how long a batch in hand may take after the end was asked for.
const grace = 8 * time.Second

// finishContext returns a context that outlives ctx by grace. It ends at once when the
// lease is lost under which ctx was made: another process writes then.
func finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopLoss := afterLoss(ctx, func() { cancel(errLeaseLost) })
	stopEnd := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, func() { cancel(nil) })
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() { stopLoss(); stopEnd(); cancel(nil) }
}

// finish hands the batch to the handler until it succeeds, then closes the intent.
func (r *batcher) finish(ctx context.Context, c *collector) error {
	for attempt := 0; len(c.batch.Records) > 0; attempt++ {
		err := r.handle(ctx, c.batch)
		if err == nil {
			break
		}
		c.batch.putDown()
		if ctx.Err() != nil {
			return err
		}
		r.metrics.retried.WithLabelValues(r.d.Stream).Inc()
		r.log.Warn("batch is repeated", "stream", r.d.Stream, "first", c.batch.First, "last", c.batch.Last, "attempt", attempt+1, "error", err)
		c.batch.Repeated = true
		if err := wait(ctx, delay(attempt)); err != nil {
			return err
		}
	}
	done := r.intent
	done.Done = true
	return r.writeIntent(ctx, done)
}

// delay grows with the number of failures.
func delay(attempt int) time.Duration {
	delays := schemas.RedeliveryDelays()
	return delays[min(attempt, len(delays)-1)]
}
