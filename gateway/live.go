package gateway

import (
	"context"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of the live clients. The queues of all clients share the text of an event.
const (
	maxQueueEvents   = 256
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

// render encodes a record as a server-sent event. The encoded JSON has no line
// breaks, so that it fits into one data line.
func render(kind string, r bus.Record) ([]byte, error) {
	e := LiveEvent{Subject: r.Subject, Sequence: r.Sequence, StoredAt: r.StoredAt, Event: r.Event}
	data, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	return []byte("event: " + kind + "\ndata: " + string(data) + "\n\n"), nil
}

// changeOf encodes a change of a kind as a server-sent event.
func changeOf(kind string) []byte { return []byte("event: change\ndata: " + kind + "\n\n") }

// hub distributes events to the clients. It never waits for a client: one whose queue is full is
// removed, and reads the current state when it connects again.
type hub struct {
	metrics *metrics
	started chan struct{} // closed when every feed is followed

	mu      sync.Mutex
	clients map[*client]struct{}
	waiting int // number of feeds that are not followed yet
	closed  bool
}

// client is a live connection.
type client struct {
	ctx    context.Context // ends when the client is removed
	cancel context.CancelFunc
	key    string
	filter *eventFilter
	queue  chan []byte // rendered events
}

// Errors of hub.join.
var (
	errTooManyOfKey = unavailable("too many live clients of this user or address; close some")
	errTooMany      = unavailable("too many live clients; retry later")
	errStopping     = unavailable("the gateway is stopping")
)

func newHub(m *metrics, feeds int) *hub {
	return &hub{metrics: m, started: make(chan struct{}), clients: map[*client]struct{}{}, waiting: feeds}
}

// start is called once for each feed, when its later events are sent to the clients.
func (h *hub) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting--; h.waiting == 0 {
		close(h.started)
	}
}

// join returns a new client. It receives every later event that matches its filter. The error is
// errTooMany, errTooManyOfKey or errStopping.
func (h *hub) join(ctx context.Context, key string, filter *eventFilter) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errStopping
	}
	if len(h.clients) >= maxClients {
		return nil, errTooMany
	}
	sameKey := 0
	for c := range h.clients {
		if c.key == key {
			sameKey++
		}
	}
	if sameKey >= maxClientsPerKey {
		return nil, errTooManyOfKey
	}

	c := &client{key: key, filter: filter, queue: make(chan []byte, maxQueueEvents)}
	if filter.changes {
		c.queue = make(chan []byte, 1)
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	h.clients[c] = struct{}{}
	h.metrics.clients.Set(float64(len(h.clients)))
	return c, nil
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

// send queues an event for the matching clients. It never blocks.
func (h *hub) send(kind string, r bus.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var text []byte // encoded for the first matching client
	for c := range h.clients {
		if !c.filter.wants(kind, r.Subject) {
			continue
		}
		if c.filter.changes {
			select {
			case c.queue <- changeOf(kind):
			default: // the change that waits stands for both
			}
			continue
		}
		if text == nil {
			var err error
			if text, err = render(kind, r); err != nil {
				return err
			}
		}
		select {
		case c.queue <- text:
		default:
			h.metrics.slow.Inc()
			h.remove(c)
		}
	}
	return nil
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
