package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"courier/bus"
)

// events sends server-sent events until the client disconnects or reads too slowly, or the gateway
// stops.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) error {
	filter, err := readFilter(r)
	if err != nil {
		return err
	}
	if err := g.awaitFeeds(r.Context()); err != nil {
		return err
	}
	c, err := g.hub.join(r.Context(), clientKey(r, identityOf(r.Context())), filter)
	if err != nil {
		return err
	}
	defer g.hub.leave(c)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer events
	s := &eventStream{gateway: g, client: c, w: w, rc: http.NewResponseController(w)}
	// The connection may serve more requests.
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }()
	if err := s.serve(); errors.Is(err, os.ErrDeadlineExceeded) {
		g.metrics.slow.Inc()
	}
	return nil // the client is disconnected; EventSource reconnects
}

// awaitFeeds waits until the gateway follows every feed, so that live clients get every new event.
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
}

// changePause is the minimum time between two changes.
const changePause = time.Second

// serve writes new events. A comment on an idle connection keeps proxies from closing it. A client of
// changes gets a change instead, because some states change with time alone.
func (s *eventStream) serve() error {
	if err := s.write([]byte(": connected\nretry: 2000\n\n")); err != nil {
		return err
	}
	keepAlive := time.NewTicker(s.gateway.options.KeepAlive)
	defer keepAlive.Stop()
	idle, pause := []byte(": keep-alive\n\n"), time.Duration(0)
	if s.client.filter.changes {
		idle, pause = changeOf(kindTime), changePause
	}
	for {
		if len(s.client.queue) == 0 || pause > 0 { // flush events that arrive together as one
			if err := s.rc.Flush(); err != nil {
				return err
			}
		}
		if pause > 0 && bus.Sleep(s.client.ctx, pause) != nil {
			return nil
		}
		text := idle
		select {
		case text = <-s.client.queue:
		case <-keepAlive.C:
		case <-s.client.ctx.Done():
			return nil
		}
		if err := s.write(text); err != nil {
			return err
		}
	}
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
