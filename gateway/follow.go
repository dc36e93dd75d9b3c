package gateway

import (
	"context"
	"time"

	"courier/bus"
	"courier/schemas"

	"golang.org/x/sync/errgroup"
)

// Run follows the event log until ctx ends, then disconnects the live clients and returns nil. It
// returns an error if it can no longer follow a stream.
//
//	NODE ──────► follow ──► nodes ────┐
//	JOB ───────► follow ──────────────┤
//	ADVICE ────► follow ──────────────┼──► hub ──► a queue per client ──► /api/v1/events
//	REGRESSOR ─► follow ──► history ──┘
//
// With Notify the new events of JOB and REGRESSOR also go to the notifier.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.hub.close()
	group, ctx := errgroup.WithContext(ctx)
	for i := range feeds {
		group.Go(func() error { return g.follow(ctx, i) })
	}
	if g.notifier != nil {
		group.Go(func() error { return g.notifier.run(ctx) })
	}
	return group.Wait()
}

// boundsPause is the pause between attempts to get the end of a stream.
const boundsPause = 200 * time.Millisecond

// follow passes the records of a feed to apply and, after the older records, to the live clients.
// It returns nil when ctx ends.
func (g *Gateway) follow(ctx context.Context, i int) error {
	f := &feeds[i]
	head, err := g.lastPosition(ctx, f.stream)
	if err != nil {
		return nil // ctx has ended
	}
	o := bus.FollowOptions{Stream: f.stream, LastPerSubject: f.lastPerSubject}
	live := !f.fromStart
	at := position{} // position of the last record
	begin := func() {
		live = true
		if at.compare(head) > 0 { // stored since the call of lastPosition
			head = at
		}
		g.hub.start(i, endOf(head.sequence))
	}
	if live {
		o.From = head.resumeSequence()
		begin()
	} else {
		o.CaughtUp = begin
	}

	return g.bus.Follow(ctx, o, func(r bus.Record) error {
		at = at.next(r.Sequence, f.batched)
		g.apply(r)
		if live {
			g.announce(i, at, r)
		}
		return nil
	})
}

// apply updates the state from which REST requests are answered. One goroutine per feed calls it.
func (g *Gateway) apply(r bus.Record) {
	switch e := r.Event.(type) {
	case *schemas.Sample:
		g.applySample(e, r.StoredAt)
	case *schemas.Trained, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		next := g.history.Load().apply(e)
		g.history.Store(&next)
	}
}

// applySample adds a sample to the table of nodes.
func (g *Gateway) applySample(s *schemas.Sample, storedAt time.Time) {
	if evicted := g.nodes.apply(s, storedAt); evicted != "" {
		g.metrics.nodesEvicted.Inc()
		g.nodesFull.Do(func() {
			g.log.Warn("node table is full; evicting the nodes with the oldest samples",
				"max_nodes", maxNodes, "evicted_node", evicted)
		})
	}
	g.metrics.nodes.Set(float64(g.nodes.size()))
}

// announce sends a record to every live client whose filter it matches.
func (g *Gateway) announce(feed int, at position, r bus.Record) {
	kind := kindOf(r.Event)
	if kind != "" {
		g.metrics.events.WithLabelValues(kind).Inc()
	}
	if g.notifier != nil {
		g.notifier.take(r.Event)
	}
	if err := g.hub.send(feed, at, kind, r); err != nil {
		g.log.Warn("skipped a live event that cannot be encoded", "subject", r.Subject, "error",
			err)
	}
}

// lastPosition returns the end of a stream. It retries until NATS answers and returns only the
// error of ctx.
func (g *Gateway) lastPosition(ctx context.Context, stream string) (position, error) {
	tick := time.NewTicker(boundsPause)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		_, last, err := g.bus.Bounds(attempt, stream)
		cancel()
		if err == nil {
			return endOf(last), nil
		}
		g.log.Debug("stream end not known yet, retrying", "stream", stream, "error", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return position{}, ctx.Err()
		}
	}
}
