package bus

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// How far a puller reads ahead: the server sends no more than was asked for. Each
// request takes the largest message of any stream.
const (
	pullRequests = 4           // that wait at the server
	pullMessages = 2500        // of one request, at most
	pullBytes    = 2 << 20     // of one request, at most
	pullExpires  = time.Second // after which the server ends a request, and says so

	pullLost = 2500 * time.Millisecond // without a word: the server does not know the requests any more
	pullRest = 100 * time.Millisecond  // without a message, after the end was asked for: no more is on its way
)

// puller takes the messages of a durable ahead of who reads them. It asks the server
// by itself: a Fetch of nats.go asks for the next messages when the last ones were
// read, and several at once cost a goroutine and a second queue for each message.
type puller struct {
	bus      *Bus
	subject  string // of requests
	each     int    // messages of a request
	inbox    *nats.Subscription
	messages chan *nats.Msg
	owed     int       // messages that were asked for
	heard    time.Time // when the last request was sent, or a later message came
}

// pull begins to take the messages of a durable, so many at once at most.
func (b *Bus) pull(d schemas.Durable, most int) (*puller, error) {
	p := &puller{bus: b, subject: "$JS.API.CONSUMER.MSG.NEXT." + d.Stream + "." + d.Name, each: min(pullMessages, most)}
	// Twice the room, for what comes late to requests that were given up. What finds
	// none after all is a hole, which who gathers fills.
	p.messages = make(chan *nats.Msg, 2*pullRequests*(p.each+1))
	var err error
	if p.inbox, err = b.nc.ChanSubscribe(b.nc.NewInbox(), p.messages); err != nil {
		return nil, fmt.Errorf("take messages of %s: %w", d.Name, unavailable(err))
	}
	return p, nil
}

// close ends it at once.
func (p *puller) close() { _ = p.inbox.Unsubscribe() } // the connection may be closed already

// more says that messages may be left after the end of ctx.
func (p *puller) more() bool { return p.owed > 0 || len(p.messages) > 0 }

// next is the next message, nil if none comes in time. After the end of ctx it is
// what was on its way, and then nil.
func (p *puller) next(ctx context.Context, until time.Time) (*nats.Msg, error) {
	for {
		if err := p.ask(ctx); err != nil {
			return nil, err
		}
		var msg *nats.Msg
		select {
		case msg = <-p.messages:
		default:
			var more bool
			if msg, more = p.await(ctx, until); !more {
				return nil, nil
			}
		}
		switch {
		case msg == nil:
		case len(msg.Data) == 0 && msg.Header.Get(statusHeader) != "":
			if err := p.ended(msg.Header); err != nil {
				return nil, err
			}
		default:
			p.owed = max(0, p.owed-1)
			return msg, nil
		}
	}
}

// ask sends requests, so that the server is never without one.
func (p *puller) ask(ctx context.Context) error {
	for p.owed <= (pullRequests-1)*p.each && ctx.Err() == nil {
		request := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d}`, p.each, pullBytes, pullExpires)
		if err := p.bus.nc.PublishRequest(p.subject, p.inbox.Subject, request); err != nil {
			return fmt.Errorf("ask for messages by %s: %w", p.subject, unavailable(err))
		}
		p.owed += p.each
		p.heard = time.Now()
	}
	return nil
}

// await waits for a message; more is false when none comes in time, or any more.
func (p *puller) await(ctx context.Context, until time.Time) (msg *nats.Msg, more bool) {
	end, patience := ctx.Done(), min(time.Until(until), time.Until(p.heard.Add(pullLost)))
	switch {
	case ctx.Err() == nil:
		if time.Until(until) <= 0 {
			return nil, false
		}
	case p.owed == 0:
		return nil, false
	default:
		end, patience = nil, pullRest
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case msg = <-p.messages:
		p.heard = time.Now()
	case <-end:
	case <-t.C:
		if ctx.Err() != nil {
			p.rest()
		}
		if time.Since(p.heard) >= pullLost {
			p.owed = 0
		}
	}
	return msg, true
}

// rest takes back what was asked for; what is on its way has come then.
func (p *puller) rest() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.inbox.Drain() // without a connection nothing more comes
	_ = p.bus.nc.FlushWithContext(ctx)
	p.owed = 0
}

// statusHeader tells the end of a request, in a message without data.
const statusHeader = "Status"

// ended takes the word of the server that a request has ended; one that no other can
// follow is an error.
func (p *puller) ended(h nats.Header) error {
	status, reason := h.Get(statusHeader), h.Get("Description")
	switch {
	case status == "503":
		return fmt.Errorf("ask for messages by %s: %w", p.subject, unavailable(nats.ErrNoResponders))
	case status == "404", status == "408", reason == "Message Size Exceeds MaxBytes", reason == "Batch Completed":
		left, _ := strconv.Atoi(h.Get("Nats-Pending-Messages")) // none said: given up after pullLost
		p.owed = max(0, p.owed-left)
		return nil
	}
	return fmt.Errorf("ask for messages by %s: %s %s", p.subject, status, reason)
}
