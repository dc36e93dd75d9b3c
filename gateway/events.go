package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds for clients that reconnect with an event ID.
const (
	maxResumed    = 5000             // messages per stream; older ones are missed
	resumeTimeout = 30 * time.Second // for reading and writing all messages
)

// events sends server-sent events until the client disconnects or does
// not read, or the gateway stops.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) error {
	filter, err := readFilter(r)
	if err != nil {
		return err
	}
	var from cursor // nil: only new events
	if id := r.Header.Get(lastEventID); id != "" {
		if from, err = parseCursor(id, feeds); err != nil {
			return err
		}
	}
	if err := g.awaitFeeds(r.Context()); err != nil {
		return err
	}

	c, heads, err := g.hub.join(r.Context(), clientKey(r, identityOf(r.Context())), filter)
	if err != nil {
		return err
	}
	defer g.hub.leave(c)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer events
	s := &eventStream{
		gateway: g,
		client:  c,
		w:       w,
		rc:      http.NewResponseController(w),
		at:      slices.Clone(heads),
	}
	// The connection may serve more requests.
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }()
	if err := s.serve(from, heads); errors.Is(err, os.ErrDeadlineExceeded) {
		g.metrics.slow.Inc()
	}
	return nil // the client is disconnected; EventSource reconnects
}

// awaitFeeds waits until the head of every feed is known, so that live clients get every new event.
func (g *Gateway) awaitFeeds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	select {
	case <-g.hub.started:
		return nil
	case <-ctx.Done():
		return unavailable("still reading the event log; retry in a moment")
	}
}

type eventStream struct {
	gateway *Gateway
	client  *client
	w       http.ResponseWriter
	rc      *http.ResponseController
	at      cursor // position of the client
}

// serve writes the events since the cursor from, if it is not nil, then new events.
func (s *eventStream) serve(from, heads cursor) error {
	if from != nil {
		s.at = from
		if err := s.resume(heads); err != nil {
			return err
		}
	}
	if err := s.write(": connected\nretry: 2000\n\n"); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}

	keepAlive := time.NewTicker(s.gateway.options.KeepAlive)
	defer keepAlive.Stop()
	for {
		idle := false
		select {
		case <-s.client.wake:
		case <-keepAlive.C:
			idle = true
		case <-s.client.ctx.Done():
			return nil
		}
		if err := s.writeBatch(s.gateway.hub.drain(s.client), idle); err != nil {
			return err
		}
	}
}

// writeBatch writes queued events and the number of events that were lost after them. On an idle
// connection it writes a comment.
func (s *eventStream) writeBatch(b batch, idle bool) error {
	for _, q := range b.events {
		if err := s.event(q.feed, q.at, q.done, q.text); err != nil {
			return err
		}
	}
	s.at.advance(b.heads)
	if b.lost != nil {
		if err := s.missed(missedSlow, b.lost); err != nil {
			return err
		}
	}
	if idle && len(b.events) == 0 {
		// It keeps proxies from closing the connection, and the id advances even if no event passes
		// the client's filter.
		if err := s.write(": keep-alive\n\n"); err != nil {
			return err
		}
	}
	return s.rc.Flush()
}

// event writes an event unless the client already has it.
func (s *eventStream) event(feed int, at position, done cursor, text []byte) error {
	if at.compare(s.at[feed]) <= 0 {
		return nil // received from another gateway that was ahead
	}
	s.at.advance(done)
	return s.write(string(text))
}

// missed writes the number of lost events per feed.
func (s *eventStream) missed(reason string, lost []uint64) error {
	m := Missed{Reason: reason, Events: map[string]uint64{}}
	for i, n := range lost {
		if n > 0 {
			m.Events[feeds[i].name] = n
		}
	}
	data, err := schemas.Marshal(m)
	if err != nil {
		return err
	}
	return s.write("event: missed\ndata: " + string(data) + "\n\n")
}

// write sends lines with the client's position as id, within Options.WriteTimeout.
func (s *eventStream) write(lines string) error {
	err := s.rc.SetWriteDeadline(time.Now().Add(s.gateway.options.WriteTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = io.WriteString(s.w, "id: "+s.at.text(feeds)+"\n"+lines)
	return err
}

// resume writes the events between the client's position and the heads, stream by stream.
func (s *eventStream) resume(heads cursor) error {
	ctx, cancel := context.WithTimeout(s.client.ctx, resumeTimeout)
	defer cancel()
	select {
	case s.gateway.resuming <- struct{}{}:
		defer func() { <-s.gateway.resuming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range feeds {
		if s.at[i] == unknownPosition || !s.client.filter.wantsAny(&feeds[i]) {
			s.at[i] = heads[i]
		}
	}
	for i := range feeds {
		if err := s.resumeFeed(ctx, i, heads[i]); err != nil {
			return err
		}
		if s.at[i].compare(heads[i]) < 0 { // the rest does not match the filter
			s.at[i] = heads[i]
		}
	}
	return nil
}

// resumeFeed writes the events of one feed up to its head. It returns only errors of the client's
// connection.
func (s *eventStream) resumeFeed(ctx context.Context, i int, head position) error {
	if s.at[i] == head {
		return nil
	}
	f := &feeds[i]
	skip := func(reason string, messages uint64) error {
		s.gateway.metrics.missed.WithLabelValues(reason).Add(float64(messages))
		lost := make([]uint64, len(feeds))
		lost[i] = messages
		return s.missed(reason, lost)
	}
	first, last, err := s.gateway.bus.Bounds(ctx, f.stream)
	if err != nil {
		return skip(missedUnavailable, head.sequence-min(head.sequence, s.at[i].sequence))
	}

	if s.at[i].sequence > last {
		s.at[i] = head
		return skip(missedReset, 0)
	}
	if s.at[i].compare(head) >= 0 {
		return nil // this gateway is behind the client
	}
	if missed := missedBefore(s.at[i], first, head); missed > 0 {
		s.at[i] = endOf(s.at[i].resumeSequence() + missed - 1)
		if err := skip(missedOld, missed); err != nil {
			return err
		}
	}
	return s.replay(ctx, i, head, skip)
}

// missedBefore returns how many messages after the client's position cannot be sent, because the
// stream has dropped them or they are too many.
func missedBefore(have position, first uint64, head position) uint64 {
	if head.sequence > maxResumed {
		first = max(first, head.sequence-maxResumed+1)
	}
	return max(first, have.resumeSequence()) - have.resumeSequence()
}

// replay writes the events of one feed from the client's position up to the head of the feed.
func (s *eventStream) replay(
	ctx context.Context, i int, head position, skip func(string, uint64) error,
) error {
	f, at := &feeds[i], position{}
	var failed error
	o := bus.FollowOptions{
		Stream:   f.stream,
		Subjects: s.client.filter.subjects(f),
		From:     s.at[i].resumeSequence(),
		Until:    head.sequence,
	}
	err := s.gateway.bus.Read(ctx, o, func(r bus.Record) error {
		at = at.next(r.Sequence, f.batched)
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
