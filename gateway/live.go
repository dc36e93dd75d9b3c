package gateway

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of the live clients. Frames are shared between clients: a buffer holds
// references, so that a thousand events are in memory once, not once a client.
const (
	clientBuffer = 256 // events that a client may lie behind
	maxClients   = 512
	maxOfOne     = 64               // of one user, or one address
	writeTimeout = 10 * time.Second // for one event to a client that does not read
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
	case *schemas.Submitted, *schemas.Started, *schemas.Epoch, *schemas.Ended, *schemas.Moved, *schemas.Risk:
		return "job"
	}
	return ""
}

// frame writes a record as one server-sent event. JSON has no line breaks, so
// one data line holds it.
func frame(kind string, r bus.Record) ([]byte, error) {
	data, err := schemas.Marshal(LiveEvent{Subject: r.Subject, Sequence: r.Sequence, StoredAt: r.StoredAt, Event: r.Event})
	if err != nil {
		return nil, err
	}
	return []byte("event: " + kind + "\ndata: " + string(data) + "\n\n"), nil
}

// announce hands a record to every live client.
func (g *Gateway) announce(r bus.Record) {
	kind := kindOf(r.Event)
	if kind == "" {
		return
	}
	f, err := frame(kind, r)
	if err != nil {
		g.log.Warn("event not announced", "subject", r.Subject, "error", err)
		return
	}
	g.metrics.events.WithLabelValues(kind).Inc()
	g.hub.send(f)
}

// hub hands each frame to every client. A client whose buffer is full is
// dropped: it must never slow the others.
type hub struct {
	metrics *metrics
	mu      sync.Mutex
	clients map[*client]struct{}
	closed  bool
}

// client is a live connection. Its channel is closed when it is dropped.
type client struct {
	who    string
	frames chan []byte
}

// errFull, errMany and errStopping say why somebody may not join the hub.
var (
	errMany     = &schemas.Error{Code: schemas.CodeUnavailable, Message: "you have too many live clients; close some"}
	errFull     = &schemas.Error{Code: schemas.CodeUnavailable, Message: "too many live clients; try again later"}
	errStopping = &schemas.Error{Code: schemas.CodeUnavailable, Message: "the gateway is stopping"}
)

func newHub(m *metrics) *hub { return &hub{metrics: m, clients: map[*client]struct{}{}} }

// join returns a new client of somebody; the error is errFull, errMany or errStopping.
func (h *hub) join(who string) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errStopping
	}
	if len(h.clients) >= maxClients {
		return nil, errFull
	}
	has := 0
	for c := range h.clients {
		if c.who == who {
			has++
		}
	}
	if has >= maxOfOne {
		return nil, errMany
	}
	c := &client{who: who, frames: make(chan []byte, clientBuffer)}
	h.clients[c] = struct{}{}
	h.metrics.clients.Set(float64(len(h.clients)))
	return c, nil
}

// leave forgets a client; one that was dropped already is no error.
func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

// drop closes the client's channel once. h.mu is held.
func (h *hub) drop(c *client) {
	if _, ok := h.clients[c]; !ok {
		return
	}
	delete(h.clients, c)
	close(c.frames)
	h.metrics.clients.Set(float64(len(h.clients)))
}

// send never blocks.
func (h *hub) send(f []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		select {
		case c.frames <- f:
		default:
			h.drop(c)
			h.metrics.slow.Inc()
		}
	}
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

// events is GET /api/v1/events: server-sent events until the client leaves, is
// too slow, or the gateway stops.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	c, err := g.hub.join(clientOf(r, askerOf(r.Context())))
	if err != nil {
		return err
	}
	defer g.hub.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in front must not hold events back
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may serve more requests
	keepAlive := time.NewTicker(g.options.KeepAlive)
	defer keepAlive.Stop()
	for next, open := []byte("retry: 2000\n\n"), true; open; {
		if err := writeFrame(w, rc, next); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				g.metrics.slow.Inc()
			}
			return nil // the client is gone or does not read; EventSource comes back
		}
		select {
		case next, open = <-c.frames:
		case <-keepAlive.C:
			next = []byte(": still here\n\n")
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

// writeFrame sends one frame within writeTimeout.
func writeFrame(w http.ResponseWriter, rc *http.ResponseController, f []byte) error {
	if err := rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := w.Write(f); err != nil {
		return err
	}
	return rc.Flush()
}
