package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of the live clients. Clients share the text of an event: a queue holds
// references, so that a thousand events are in memory once, not once for each client.
const (
	queueEvents = 1024    // that a client may lie behind
	queueBytes  = 4 << 20 // of these events
	maxClients  = 512
	maxOfOne    = 64 // of one user, or one address
)

// LiveEvent is the data of one server-sent event. The event's name is its kind:
// "sample", "job", "advice" or "regressor".
type LiveEvent struct {
	Subject  string        `json:"subject"`   // such as job.<id>.epoch
	Sequence uint64        `json:"sequence"`  // in its stream
	StoredAt time.Time     `json:"stored_at"` // by the clock of NATS
	Event    schemas.Event `json:"event"`     // as it was published
}

// kindOf names an event for the clients; "" for one that they do not get.
func kindOf(e schemas.Event) string {
	switch e.(type) {
	case *schemas.Sample:
		return "sample"
	case *schemas.Advice:
		return "advice"
	case *schemas.Trained, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		return "regressor"
	case *schemas.Submitted, *schemas.JobAdmitted, *schemas.Started, *schemas.Epoch, *schemas.Ended, *schemas.Moved, *schemas.Risk:
		return "job"
	}
	return ""
}

// frame is an event on its way to the clients.
type frame struct {
	feed int      // index of its feed
	at   position // in its stream
	done cursor   // after it, in all streams
	text []byte   // event and data lines
}

// render writes a record as the lines of a server-sent event, without its id. JSON has no
// line breaks, so that one data line holds it.
func render(kind string, r bus.Record) ([]byte, error) {
	e := LiveEvent{Subject: r.Subject, Sequence: r.Sequence, StoredAt: r.StoredAt, Event: r.Event}
	data, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	return []byte("event: " + kind + "\ndata: " + string(data) + "\n\n"), nil
}

// announce hands a record to every live client that wants it.
func (g *Gateway) announce(feed int, at position, r bus.Record) {
	kind := kindOf(r.Event)
	if kind != "" {
		g.metrics.events.WithLabelValues(kind).Inc()
	}
	if err := g.hub.send(feed, at, kind, r); err != nil {
		g.log.Warn("event not announced", "subject", r.Subject, "error", err)
	}
}

// hub hands each event to every client. It never waits for a client: events that do not
// fit into a client's queue are counted, and the client is told.
type hub struct {
	metrics *metrics
	started chan struct{} // closed when the head of every feed is known

	mu      sync.Mutex
	clients map[*client]struct{}
	heads   cursor // of the feeds
	waiting int    // feeds whose head is not known yet
	closed  bool
}

// client is a live connection. The fields below its filter are guarded by the hub.
type client struct {
	ctx    context.Context // ends when the client is dropped
	cancel context.CancelFunc
	wake   chan struct{} // holds a value while the queue may have something
	who    string
	filter *eventFilter

	queue []frame
	bytes int
	lost  []uint64 // events of each feed that did not fit; nil: none
}

// errFull, errMany and errStopping say why a client may not join the hub.
var (
	errMany     = &schemas.Error{Code: schemas.CodeUnavailable, Message: "you have too many live clients; close some"}
	errFull     = &schemas.Error{Code: schemas.CodeUnavailable, Message: "too many live clients; try again later"}
	errStopping = &schemas.Error{Code: schemas.CodeUnavailable, Message: "the gateway is stopping"}
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

// start sets the head of a feed: from here on all of its events are sent.
func (h *hub) start(feed int, head position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads[feed] = head
	if h.waiting--; h.waiting == 0 {
		close(h.started)
	}
}

// join returns a new client and the heads after which it gets every event that its filter
// wants. The error is errFull, errMany or errStopping.
func (h *hub) join(ctx context.Context, who string, filter *eventFilter) (*client, cursor, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, errStopping
	}
	if len(h.clients) >= maxClients {
		return nil, nil, errFull
	}
	has := 0
	for c := range h.clients {
		if c.who == who {
			has++
		}
	}
	if has >= maxOfOne {
		return nil, nil, errMany
	}

	c := &client{who: who, filter: filter, wake: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	h.clients[c] = struct{}{}
	h.metrics.clients.Set(float64(len(h.clients)))
	return c, slices.Clone(h.heads), nil
}

// leave forgets a client, unless it was dropped already.
func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

// drop ends the client's context once. h.mu is held.
func (h *hub) drop(c *client) {
	if _, ok := h.clients[c]; !ok {
		return
	}
	delete(h.clients, c)
	c.cancel()
	h.metrics.clients.Set(float64(len(h.clients)))
}

// send queues an event for the clients that want it and moves the head of its feed. It
// never blocks. An event without a kind only moves the head.
func (h *hub) send(feed int, at position, kind string, r bus.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads[feed] = at
	if kind == "" {
		return nil
	}

	var f frame // made for the first client that wants it
	for c := range h.clients {
		if !c.filter.wants(kind, r.Subject) {
			continue
		}
		if f.text == nil {
			text, err := render(kind, r)
			if err != nil {
				return err
			}
			f = frame{feed: feed, at: at, done: slices.Clone(h.heads), text: text}
		}
		c.push(f, len(h.heads))
		if c.lost != nil {
			h.metrics.missed.WithLabelValues(missedSlow).Inc()
		}
	}
	return nil
}

// push queues a frame, or counts it as lost. Once one is lost all are, until the queue is
// taken, so that what is lost comes after what is queued. The hub's lock is held.
func (c *client) push(f frame, feeds int) {
	full := len(c.queue) >= queueEvents || c.bytes+len(f.text) > queueBytes && len(c.queue) > 0
	if full && c.lost == nil {
		c.lost = make([]uint64, feeds)
	}
	if c.lost != nil {
		c.lost[f.feed]++
	} else {
		c.queue, c.bytes = append(c.queue, f), c.bytes+len(f.text)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// batch is what a client has to write: frames, then how much was lost after them.
type batch struct {
	frames []frame
	lost   []uint64 // by feed; nil: nothing
	heads  cursor   // after all of it
}

// take empties the client's queue.
func (h *hub) take(c *client) batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := batch{frames: c.queue, lost: c.lost, heads: slices.Clone(h.heads)}
	c.queue, c.bytes, c.lost = nil, 0, nil
	return b
}

// close drops every client and lets none join any more.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.clients {
		h.drop(c)
	}
}
