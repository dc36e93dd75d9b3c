package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

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

// newPuller subscribes to the messages of a durable, of which at most maxMessages arrive ahead.
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

// close drops the messages that were not read.
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
