package bus

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// Limits of the messages that a puller requests ahead. Each request admits the largest message of
// any stream.
const (
	pullRequests = 4           // open requests at the server
	pullMessages = 2500        // maximum per request
	pullBytes    = 2 << 20     // maximum per request
	pullExpires  = time.Second // after it the server ends a request with a status message

	pullLost  = 2500 * time.Millisecond // silence after which requests count as lost
	pullDrain = 100 * time.Millisecond  // silence after the end of ctx after which next returns nil
)

// puller receives the messages of a durable ahead of their use. It sends its own pull
// requests: Fetch of nats.go requests the next messages only after the previous ones were
// read, and concurrent calls of it need a goroutine and a second queue per message.
type puller struct {
	bus         *Bus
	subject     string // of pull requests
	requestSize int    // messages per request
	inbox       *nats.Subscription
	messages    chan *nats.Msg
	outstanding int       // requested messages that have not arrived
	activeAt    time.Time // time of the last request or message
}

// newPuller subscribes to the messages of a durable, with at most maxMessages per request.
func (b *Bus) newPuller(d schemas.Durable, maxMessages int) (*puller, error) {
	p := &puller{
		bus:         b,
		subject:     "$JS.API.CONSUMER.MSG.NEXT." + d.Stream + "." + d.Name,
		requestSize: min(pullMessages, maxMessages),
	}
	// The channel has twice the necessary capacity, for late messages of requests that count as
	// lost. If a message is dropped nevertheless, gather fills the gap.
	p.messages = make(chan *nats.Msg, 2*pullRequests*(p.requestSize+1))
	var err error
	if p.inbox, err = b.nc.ChanSubscribe(b.nc.NewInbox(), p.messages); err != nil {
		return nil, fmt.Errorf("receive messages of %s: %w", d.Name, unavailable(err))
	}
	return p, nil
}

// close drops the messages that were not read.
func (p *puller) close() { _ = p.inbox.Unsubscribe() } // the connection may be closed already

// hasMore reports whether next may return messages after the end of its context.
func (p *puller) hasMore() bool { return p.outstanding > 0 || len(p.messages) > 0 }

// next returns the next message, or nil if none arrives before the deadline. After the end of
// ctx it returns the messages that were on their way, then nil.
func (p *puller) next(ctx context.Context, deadline time.Time) (*nats.Msg, error) {
	for {
		if err := p.request(ctx); err != nil {
			return nil, err
		}
		var msg *nats.Msg
		select {
		case msg = <-p.messages:
		default:
			var more bool
			if msg, more = p.await(ctx, deadline); !more {
				return nil, nil
			}
		}
		switch {
		case msg == nil:
		case len(msg.Data) == 0 && msg.Header.Get(statusHeader) != "":
			if err := p.handleStatus(msg.Header); err != nil {
				return nil, err
			}
		default:
			p.outstanding = max(0, p.outstanding-1)
			return msg, nil
		}
	}
}

// request keeps pullRequests requests open until ctx ends.
func (p *puller) request(ctx context.Context) error {
	for p.outstanding <= (pullRequests-1)*p.requestSize && ctx.Err() == nil {
		body := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d}`,
			p.requestSize, pullBytes, pullExpires)
		if err := p.bus.nc.PublishRequest(p.subject, p.inbox.Subject, body); err != nil {
			return fmt.Errorf("request messages by %s: %w", p.subject, unavailable(err))
		}
		p.outstanding += p.requestSize
		p.activeAt = time.Now()
	}
	return nil
}

// await waits for a message. msg may be nil although more is true; the caller then calls it
// again.
func (p *puller) await(ctx context.Context, deadline time.Time) (msg *nats.Msg, more bool) {
	end := ctx.Done()
	timeout := min(time.Until(deadline), time.Until(p.activeAt.Add(pullLost)))
	switch {
	case ctx.Err() == nil:
		if time.Until(deadline) <= 0 {
			return nil, false
		}
	case p.outstanding == 0:
		return nil, false
	default:
		end, timeout = nil, pullDrain
	}

	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case msg = <-p.messages:
		p.activeAt = time.Now()
	case <-end:
	case <-t.C:
		if ctx.Err() != nil {
			p.drain()
		}
		if time.Since(p.activeAt) >= pullLost {
			p.outstanding = 0
		}
	}
	return msg, true
}

// drain unsubscribes. All messages that the server has sent are in the channel afterwards.
func (p *puller) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.inbox.Drain() // without a connection no message arrives
	_ = p.bus.nc.FlushWithContext(ctx)
	p.outstanding = 0
}

// statusHeader marks a message without data that ends a request.
const statusHeader = "Status"

// handleStatus handles the end of a request. It returns an error if further requests cannot
// succeed.
func (p *puller) handleStatus(h nats.Header) error {
	status, reason := h.Get(statusHeader), h.Get("Description")
	switch {
	case status == "503":
		err := unavailable(nats.ErrNoResponders)
		return fmt.Errorf("request messages by %s: %w", p.subject, err)
	case status == "404", status == "408",
		reason == "Message Size Exceeds MaxBytes", reason == "Batch Completed":
		// Without the header the messages count as outstanding until pullLost.
		left, _ := strconv.Atoi(h.Get("Nats-Pending-Messages"))
		p.outstanding = max(0, p.outstanding-left)
		return nil
	}
	return fmt.Errorf("request messages on %s: server replied %s %s", p.subject, status, reason)
}
