package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

type batchBuilder struct {
	*batcher
	batch    Batch
	at       time.Time // when the last message was stored
	count    int       // messages, also dead ones and those that were not accepted
	accepted int       // messages that were accepted, dead ones included
}

func (r *batcher) newBuilder(redelivered bool) *batchBuilder {
	batch := Batch{Stream: r.durable.Stream, Redelivered: redelivered}
	return &batchBuilder{batcher: r, batch: batch}
}

func (c *batchBuilder) add(
	ctx context.Context, subject string, data []byte, sequence uint64, at time.Time,
) error {
	if c.count == 0 {
		c.batch.First = sequence
	}
	c.batch.Last, c.at = sequence, at
	c.count++
	if c.options.Accept != nil && !c.options.Accept(subject) {
		return nil
	}
	c.accepted++
	c.batch.Bytes += len(data)

	position := Record{Subject: subject, Sequence: sequence, StoredAt: at}
	records, err := c.appendRecords(ctx, c.batch.Records, c.durable.Stream, c.durable.Name, data, position)
	c.batch.Records = records
	return err
}

// fillGap adds the messages of the stream with first <= sequence < end. The durable leaves a gap if
// a process crashed between receiving messages and recording their intent: the server withholds
// these messages until AckWait has passed, and an acknowledgement of later messages would
// acknowledge them too.
func (c *batchBuilder) fillGap(ctx context.Context, first, end uint64) error {
	if first >= end {
		return nil
	}
	return c.visitStored(ctx, c.durable.Stream, first, end, func(msg *storedMessage) error {
		if msg.Sequence == end {
			return nil
		}
		return c.add(ctx, msg.Subject, msg.Data, msg.Sequence, msg.Time)
	})
}

func (c *batchBuilder) intent() intent {
	return intent{First: c.batch.First, Last: c.batch.Last, At: c.at, Count: c.count}
}

// maxBatchBytes limits the size of a batch in the log. Its events need three times as much memory,
// and the next batch is gathered at the same time.
const maxBatchBytes = 32 << 20

// maxRange limits the messages of a batch with BatchOptions.Accept, as a multiple of MaxMessages. The
// messages that are not accepted need no memory, but a longer range takes longer to read again.
const maxRange = 2

// isFull reports whether a batch has reached a limit of messages, events or bytes. It counts the
// messages that were accepted, so that the insert of a shard has as many rows as that of one server.
func (c *batchBuilder) isFull() bool {
	n := max(c.accepted, len(c.batch.Records))
	return n >= c.options.MaxMessages ||
		c.count >= maxRange*c.options.MaxMessages ||
		c.batch.Bytes >= maxBatchBytes
}

// gatheredBatch is a batch and the last message that was received for it, whose acknowledgement
// covers all earlier ones. An empty batch has one if it only acknowledges messages that were handled
// before.
type gatheredBatch struct {
	*batchBuilder
	last jetstream.Msg // nil: none
}

type logPosition struct {
	sequence uint64
	at       time.Time
}

// streamReset reports that the stream was truncated or created again, and assigns sequences a second time.
type streamReset struct{ sequence uint64 } // of the first new message

func (e streamReset) Error() string {
	return fmt.Sprintf("the stream was reset: it assigned sequence %d again", e.sequence)
}

// isReset reports whether a message was stored after position p with an earlier sequence.
func (p logPosition) isReset(message logPosition) bool {
	return message.sequence <= p.sequence && !p.at.IsZero() && message.at.After(p.at)
}

func (r *batcher) gather(ctx context.Context, p *puller, after logPosition) (gatheredBatch, error) {
	g := gatheredBatch{batchBuilder: r.newBuilder(false)}
	g.batch.Records = make([]Record, 0, r.lastSize)
	defer func() { r.lastSize = len(g.batch.Records) }()
	reading, stop := context.WithTimeout(ctx, r.options.MaxAge)
	defer stop()

	// Messages that have arrived are added even after the end of ctx.
	finishing, cancel := finishContext(ctx)
	defer cancel()
	for !g.isFull() {
		msg, err := p.next(ctx, reading)
		if msg == nil || err != nil {
			return g, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return g, fmt.Errorf("read the position of a message in %s: %w", r.durable.Stream, err)
		}
		position := logPosition{meta.Sequence.Stream, meta.Timestamp}
		g.last = msg
		if after.isReset(position) {
			return g, streamReset{position.sequence}
		}
		last := max(after.sequence, g.batch.Last)
		if position.sequence <= last {
			continue // a redelivery
		}

		if err := g.fillGap(finishing, last+1, position.sequence); err != nil {
			return g, err
		}
		err = g.add(finishing, msg.Subject(), msg.Data(), position.sequence, position.at)
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// Limits of the messages that a puller requests ahead. pullBytes admits the largest message of any
// stream several times.
const (
	pullMessages = 10_000
	pullBytes    = 8 << 20
)

// puller receives the messages of a durable ahead of their use. It uses a callback, because an
// iterator of the client starts a timer for each message.
type puller struct {
	consuming jetstream.ConsumeContext
	messages  chan jetstream.Msg
	failed    chan error // of capacity 1
	closed    chan struct{}
	isEmpty   bool // no message is left after the end of the context
}

func newPuller(consumer jetstream.Consumer, maxMessages int) (*puller, error) {
	p := &puller{
		messages: make(chan jetstream.Msg, 512), // the rest waits in the client
		failed:   make(chan error, 1),
		closed:   make(chan struct{}),
	}
	var err error
	p.consuming, err = consumer.Consume(p.receive,
		jetstream.PullMaxMessagesWithBytesLimit(min(pullMessages, maxMessages), pullBytes),
		jetstream.PullHeartbeat(pingInterval),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case p.failed <- err:
			default: // one failure suffices
			}
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("receive messages: %w", unavailable(err))
	}
	return p, nil
}

// receive passes a message on. It blocks while many wait.
func (p *puller) receive(msg jetstream.Msg) {
	select {
	case p.messages <- msg:
	case <-p.closed:
	}
}

func (p *puller) close() {
	close(p.closed)
	p.consuming.Stop()
}

// next returns the next message, or nil if none arrives before the end of reading, which ends with
// ctx or earlier. After the end of ctx it returns the messages that have arrived, then nil.
func (p *puller) next(ctx, reading context.Context) (jetstream.Msg, error) {
	select {
	case msg := <-p.messages:
		return msg, nil
	case err := <-p.failed:
		return nil, fmt.Errorf("receive messages: %w", unavailable(err))
	case <-reading.Done():
	}
	if ctx.Err() == nil {
		return nil, nil
	}

	p.consuming.Drain()
	select {
	case msg := <-p.messages:
		return msg, nil
	case <-p.consuming.Closed():
	}
	select {
	case msg := <-p.messages:
		return msg, nil
	default:
		p.isEmpty = true
		return nil, nil
	}
}
