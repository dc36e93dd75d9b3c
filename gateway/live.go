package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of the live clients. The queues of all clients share the text of an event.
const (
	maxQueueEvents   = 1024
	maxQueueBytes    = 4 << 20
	maxClients       = 512
	maxClientsPerKey = 64 // of one user or address
)

// LiveEvent is the data of one server-sent event. The event's name is its kind:
// "sample", "job", "advice" or "regressor".
type LiveEvent struct {
	Subject  string        `json:"subject"`   // for example job.<id>.epoch
	Sequence uint64        `json:"sequence"`  // sequence in its stream
	StoredAt time.Time     `json:"stored_at"` // by the clock of NATS
	Event    schemas.Event `json:"event"`     // published event
}

// Missed is the data of the server-sent event "missed": the client did not receive these events and
// continues after them.
type Missed struct {
	Reason string            `json:"reason"` // slow, old, reset or unavailable
	Events map[string]uint64 `json:"events"` // number per stream, in lower case
}

// Reasons of Missed.
const (
	// missedSlow: the client read too slowly. Only events that match its filter count.
	missedSlow = "slow"
	// missedOld: more than maxResumed messages, or messages that the stream has dropped. Messages
	// count regardless of the filter.
	missedOld = "old"
	// missedReset: the stream was recreated. The number is unknown.
	missedReset = "reset"
	// missedUnavailable: NATS did not deliver the messages. The number is an upper limit.
	missedUnavailable = "unavailable"
)

// queuedEvent is an encoded event in the queues of clients.
type queuedEvent struct {
	feed int      // index of its feed
	at   position // position in its stream
	done cursor   // positions in all streams after the event
	text []byte   // event and data lines
}

// render encodes a record as a server-sent event without its id. The encoded JSON has no line
// breaks, so that it fits into one data line.
func render(kind string, r bus.Record) ([]byte, error) {
	e := LiveEvent{Subject: r.Subject, Sequence: r.Sequence, StoredAt: r.StoredAt, Event: r.Event}
	data, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	return []byte("event: " + kind + "\ndata: " + string(data) + "\n\n"), nil
}

// hub distributes events to the clients. It never waits for a client: events that do not fit into a
// client's queue are counted, and the client receives their number.
type hub struct {
	metrics *metrics
	started chan struct{} // closed when the head of every feed is known

	mu      sync.Mutex
	clients map[*client]struct{}
	heads   cursor // heads of the feeds
	waiting int    // number of feeds whose head is unknown
	closed  bool
}

// client is a live connection. The hub's lock guards the fields after filter.
type client struct {
	ctx    context.Context // ends when the client is removed
	cancel context.CancelFunc
	wake   chan struct{} // has a value if the queue may not be empty
	key    string
	filter *eventFilter

	queue []queuedEvent
	bytes int
	lost  []uint64 // number of events of each feed that did not fit; nil: none
}

// Errors of hub.join.
var (
	errTooManyOfKey = unavailable("too many live clients of this user or address; close some")
	errTooMany      = unavailable("too many live clients; retry later")
	errStopping     = unavailable("the gateway is stopping")
)

func newHub(m *metrics, feeds int) *hub {
	return &hub{
		metrics: m,
		started: make(chan struct{}),
		clients: map[*client]struct{}{},
		heads:   make(cursor, feeds),
		waiting: feeds,
	}
}

// start sets the head of a feed. All later events are sent to the clients.
func (h *hub) start(feed int, head position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads[feed] = head
	if h.waiting--; h.waiting == 0 {
		close(h.started)
	}
}

// join returns a new client and the heads. The client receives every later event that matches its
// filter. The error is errTooMany, errTooManyOfKey or errStopping.
func (h *hub) join(ctx context.Context, key string, filter *eventFilter) (*client, cursor, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, errStopping
	}
	if len(h.clients) >= maxClients {
		return nil, nil, errTooMany
	}
	sameKey := 0
	for c := range h.clients {
		if c.key == key {
			sameKey++
		}
	}
	if sameKey >= maxClientsPerKey {
		return nil, nil, errTooManyOfKey
	}

	c := &client{key: key, filter: filter, wake: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	h.clients[c] = struct{}{}
	h.metrics.clients.Set(float64(len(h.clients)))
	return c, slices.Clone(h.heads), nil
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(c)
}

// remove deletes a client and ends its context. It does nothing for a removed client. The caller
// holds h.mu.
func (h *hub) remove(c *client) {
	if _, ok := h.clients[c]; !ok {
		return
	}
	delete(h.clients, c)
	c.cancel()
	h.metrics.clients.Set(float64(len(h.clients)))
}

// send queues an event for the matching clients and moves the head of its feed. It never blocks. An
// event without a kind only moves the head.
func (h *hub) send(feed int, at position, kind string, r bus.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads[feed] = at
	if kind == "" {
		return nil
	}

	var event queuedEvent // encoded for the first matching client
	for c := range h.clients {
		if !c.filter.wants(kind, r.Subject) {
			continue
		}
		if event.text == nil {
			text, err := render(kind, r)
			if err != nil {
				return err
			}
			event = queuedEvent{feed: feed, at: at, done: slices.Clone(h.heads), text: text}
		}
		c.push(event, len(h.heads))
		if c.lost != nil {
			h.metrics.missed.WithLabelValues(missedSlow).Inc()
		}
	}
	return nil
}

// push queues an event, or counts it as lost. After one lost event all are lost until the queue is
// emptied, so that the lost events follow the queued ones. The caller holds the hub's lock.
func (c *client) push(event queuedEvent, feeds int) {
	tooLarge := c.bytes+len(event.text) > maxQueueBytes && len(c.queue) > 0
	full := len(c.queue) >= maxQueueEvents || tooLarge
	if full && c.lost == nil {
		c.lost = make([]uint64, feeds)
	}
	if c.lost != nil {
		c.lost[event.feed]++
	} else {
		c.queue, c.bytes = append(c.queue, event), c.bytes+len(event.text)
	}

	select {
	case c.wake <- struct{}{}:
	default:
	}
}

type batch struct {
	events []queuedEvent
	lost   []uint64 // number of lost events after these, by feed; nil: none
	heads  cursor   // position after the batch
}

// drain returns the content of the client's queue and empties it.
func (h *hub) drain(c *client) batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := batch{events: c.queue, lost: c.lost, heads: slices.Clone(h.heads)}
	c.queue, c.bytes, c.lost = nil, 0, nil
	return b
}

// close removes every client. No client can join afterwards.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.clients {
		h.remove(c)
	}
}
