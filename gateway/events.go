package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// lastEventID is the header by which a client says which event it got last.
const lastEventID = "Last-Event-ID"

// Bounds of what is read again for a client that comes back.
const (
	maxResumed    = 5000             // messages of each stream; the older ones are missed
	maxResuming   = 8                // clients at a time
	resumeTimeout = 30 * time.Second // for reading and writing all of it
)

// Missed is the data of the server-sent event "missed": the client did not get these
// events, and continues behind them.
type Missed struct {
	Reason string            `json:"reason"` // slow, old, reset or unavailable
	Events map[string]uint64 `json:"events"` // by stream in lower case
}

// Reasons of Missed.
const (
	missedSlow        = "slow"        // the client read too slowly; events that its filter wants
	missedOld         = "old"         // more than maxResumed, or dropped by the stream; messages, whatever the filter
	missedReset       = "reset"       // the stream was created anew; how many is not known
	missedUnavailable = "unavailable" // NATS did not deliver them; at most that many messages
)

// events is GET /api/v1/events: server-sent events until the client leaves, does not read,
// or the gateway stops.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) error {
	filter, err := g.readFilter(r)
	if err != nil {
		return err
	}
	var from cursor // nil: from now on
	if id := r.Header.Get(lastEventID); id != "" {
		if from, err = parseCursor(id, g.feeds); err != nil {
			return err
		}
	}
	if err := g.awaitFeeds(r.Context()); err != nil {
		return err
	}
	c, heads, err := g.hub.join(r.Context(), clientOf(r, askerOf(r.Context())), filter)
	if err != nil {
		return err
	}
	defer g.hub.leave(c)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold events back
	s := &eventStream{gateway: g, client: c, w: w, rc: http.NewResponseController(w), at: slices.Clone(heads)}
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }() // the connection may serve more requests
	if err := s.serve(from, heads); errors.Is(err, os.ErrDeadlineExceeded) {
		g.metrics.slow.Inc()
	}
	return nil // the client is gone; EventSource comes back
}

// awaitFeeds waits until the live clients get every new event.
func (g *Gateway) awaitFeeds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	select {
	case <-g.hub.started:
		return nil
	case <-ctx.Done():
		return &schemas.Error{Code: schemas.CodeUnavailable, Message: "the event log is not read yet; try again"}
	}
}

// eventStream writes events to one client.
type eventStream struct {
	gateway *Gateway
	client  *client
	w       http.ResponseWriter
	rc      *http.ResponseController
	at      cursor // what the client has: the id of the next event written
	line    []byte // reused
}

// serve writes what happened since the cursor from, then what happens.
func (s *eventStream) serve(from, heads cursor) error {
	if err := s.write([]byte("retry: 2000\n\n")); err != nil {
		return err
	}
	if from != nil {
		s.at = from
		if err := s.resume(heads); err != nil {
			return err
		}
	}
	if err := s.comment("connected"); err != nil {
		return err
	}

	keepAlive := time.NewTicker(s.gateway.options.KeepAlive)
	defer keepAlive.Stop()
	for {
		silent := false
		select {
		case <-s.client.wake:
		case <-keepAlive.C:
			silent = true
		case <-s.client.ctx.Done():
			return nil
		}
		if err := s.writeBatch(s.gateway.hub.take(s.client), silent); err != nil {
			return err
		}
	}
}

// writeBatch writes queued events and what was lost after them; if there is neither and
// the connection was silent, a comment.
func (s *eventStream) writeBatch(b batch, silent bool) error {
	for _, f := range b.frames {
		if err := s.event(f.feed, f.at, f.done, f.text); err != nil {
			return err
		}
	}
	s.at.advance(b.heads)
	if b.lost != nil {
		if err := s.missed(missedSlow, b.lost); err != nil {
			return err
		}
	}
	if silent && len(b.frames) == 0 {
		return s.comment("still here")
	}
	return s.rc.Flush()
}

// event writes an event that the client does not have yet.
func (s *eventStream) event(feed int, at position, done cursor, text []byte) error {
	if at.compare(s.at[feed]) <= 0 {
		return nil // from another gateway, which was ahead
	}
	s.at.advance(done)
	if err := s.write(s.id()); err != nil {
		return err
	}
	return s.write(text)
}

// missed tells the client how many events of each feed it did not get.
func (s *eventStream) missed(reason string, lost []uint64) error {
	m := Missed{Reason: reason, Events: map[string]uint64{}}
	for i, n := range lost {
		if n > 0 {
			m.Events[s.gateway.feeds[i].name] = n
		}
	}
	data, err := schemas.Marshal(m)
	if err != nil {
		return err
	}
	if err := s.write(s.id()); err != nil {
		return err
	}
	return s.write([]byte("event: missed\ndata: " + string(data) + "\n\n"))
}

// comment writes a comment, which keeps proxies from closing the connection, with the id
// of what was handled, so that a filtered client does not fall behind.
func (s *eventStream) comment(text string) error {
	if err := s.write(s.id()); err != nil {
		return err
	}
	if err := s.write([]byte(": " + text + "\n\n")); err != nil {
		return err
	}
	return s.rc.Flush()
}

// id returns the id line of what the client has.
func (s *eventStream) id() []byte {
	s.line = s.at.appendTo(append(s.line[:0], "id: "...), s.gateway.feeds)
	s.line = append(s.line, '\n')
	return s.line
}

// write sends lines within Options.WriteTimeout.
func (s *eventStream) write(lines []byte) error {
	err := s.rc.SetWriteDeadline(time.Now().Add(s.gateway.options.WriteTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = s.w.Write(lines)
	return err
}

// resume writes the events between what the client has and the heads, stream by stream.
func (s *eventStream) resume(heads cursor) error {
	ctx, cancel := context.WithTimeout(s.client.ctx, resumeTimeout)
	defer cancel()
	select {
	case s.gateway.resuming <- struct{}{}:
		defer func() { <-s.gateway.resuming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range s.gateway.feeds {
		if s.at[i] == unknownPosition || !s.client.filter.wantsAny(&s.gateway.feeds[i]) {
			s.at[i] = heads[i]
		}
	}
	for i := range s.gateway.feeds {
		if err := s.resumeFeed(ctx, i, heads[i]); err != nil {
			return err
		}
		if s.at[i].compare(heads[i]) < 0 { // what follows the last event is not wanted
			s.at[i] = heads[i]
		}
	}
	return nil
}

// resumeFeed writes the events of one feed up to its head. The error is that of the client.
func (s *eventStream) resumeFeed(ctx context.Context, i int, head position) error {
	if s.at[i] == head {
		return nil
	}
	feed := &s.gateway.feeds[i]
	skip := func(reason string, messages uint64) error {
		s.gateway.metrics.missed.WithLabelValues(reason).Add(float64(messages))
		lost := make([]uint64, len(s.gateway.feeds))
		lost[i] = messages
		return s.missed(reason, lost)
	}
	first, last, err := s.gateway.bus.Bounds(ctx, feed.stream)
	if err != nil {
		return skip(missedUnavailable, head.sequence-min(head.sequence, s.at[i].sequence))
	}
	if s.at[i].sequence > last {
		s.at[i] = head
		return skip(missedReset, 0)
	}
	if s.at[i].compare(head) >= 0 {
		return nil // this gateway is behind; what the client has is not sent again
	}
	if missed := missedBefore(s.at[i], first, head); missed > 0 {
		s.at[i] = endOf(s.at[i].unhandled() + missed - 1)
		if err := skip(missedOld, missed); err != nil {
			return err
		}
	}
	return s.replay(ctx, i, head, skip)
}

// missedBefore returns how many messages after have cannot be read again, because the
// stream begins later or they are too many.
func missedBefore(have position, first uint64, head position) uint64 {
	if head.sequence > maxResumed {
		first = max(first, head.sequence-maxResumed+1)
	}
	return max(first, have.unhandled()) - have.unhandled()
}

// replay reads the events of one feed after what the client has, up to its head.
func (s *eventStream) replay(ctx context.Context, i int, head position, skip func(string, uint64) error) error {
	feed, at := &s.gateway.feeds[i], position{}
	var failed error
	o := bus.FollowOptions{
		Stream:   feed.stream,
		Subjects: s.client.filter.subjects(feed),
		From:     s.at[i].unhandled(),
		Until:    head.sequence,
	}
	err := s.gateway.bus.Read(ctx, o, func(r bus.Record) error {
		at = at.next(r.Sequence, feed.several)
		kind := kindOf(r.Event)
		if at.compare(head) > 0 || kind == "" || !s.client.filter.wants(kind, r.Subject) {
			return nil
		}
		done := slices.Clone(s.at)
		done[i] = at
		text, err := render(kind, r)
		if err == nil {
			err = s.event(i, at, done, text)
		}
		failed = err
		return err
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return skip(missedUnavailable, head.sequence-min(head.sequence, s.at[i].sequence))
	}
	return nil
}
