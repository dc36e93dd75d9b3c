package bus

import (
	"bytes"
	"sync"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// own holds the events that this Bus has sent and its one sharing follower has
// not met yet, so that a service does not read its own words. It trusts bytes,
// not names: an event that another process stored under the same identity is read.
type own struct {
	mu   sync.Mutex
	sent map[string]sent // by message ID; nil while nobody follows with FollowOptions.Share
}

type sent struct {
	event schemas.Event
	data  []byte
}

// share lets events be offered until the returned function is called.
func (o *own) share() (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = map[string]sent{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sent = nil
	}
}

// lend offers an event to the sharing follower; false where there is none.
func (o *own) lend(e schemas.Event, data []byte) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent == nil {
		return false
	}
	o.sent[e.ID()] = sent{e, data}
	return true
}

// take ends the offer and returns the event, nil if no event of these bytes is
// on offer.
func (o *own) take(id string, data []byte) schemas.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.sent[id]
	if !ok || !bytes.Equal(s.data, data) {
		return nil
	}
	delete(o.sent, id)
	return s.event
}

// taken is the event of a message, if this Bus sent it; nil: it is to be read.
func (o *own) taken(f *FollowOptions, msg jetstream.Msg) schemas.Event {
	if !f.Share {
		return nil
	}
	return o.take(msg.Headers().Get(jetstream.MsgIDHeader), msg.Data())
}
