package bus

import (
	"bytes"
	"sync"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// publishedEvents holds the events that this Bus has published by PublishOnce and that its
// follower with FollowOptions.ReusePublished has not received yet. The follower then need
// not decode them. Events are compared by their bytes: if another process stored a different
// event under the same identity, the follower decodes that one.
type publishedEvents struct {
	mu   sync.Mutex
	byID map[string]publishedEvent // by message ID; nil while there is no such follower
}

type publishedEvent struct {
	event schemas.Event
	data  []byte
}

// enable keeps published events until the returned function is called.
func (p *publishedEvents) enable() (disable func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID = map[string]publishedEvent{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.byID = nil
	}
}

// add keeps an event for the follower and reports whether there is one.
func (p *publishedEvents) add(e schemas.Event, data []byte) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		return false
	}
	p.byID[e.ID()] = publishedEvent{e, data}
	return true
}

// remove removes and returns the event with these bytes, or nil if there is none.
func (p *publishedEvents) remove(id string, data []byte) schemas.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byID[id]
	if !ok || !bytes.Equal(found.data, data) {
		return nil
	}
	delete(p.byID, id)
	return found.event
}

// eventOf returns the event of a message that this Bus published, or nil if the message has
// to be decoded.
func (p *publishedEvents) eventOf(o *FollowOptions, msg jetstream.Msg) schemas.Event {
	if !o.ReusePublished {
		return nil
	}
	return p.remove(msg.Headers().Get(jetstream.MsgIDHeader), msg.Data())
}
