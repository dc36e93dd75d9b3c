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
	for _, f := range feeds {
		group.Go(func() error { return g.follow(ctx, f) })
	}
	if g.notifier != nil {
		group.Go(func() error { return g.notifier.run(ctx) })
	}
	return group.Wait()
}

// follow passes the records of a feed to apply and, after the older records, to the live clients.
// It returns nil when ctx ends.
func (g *Gateway) follow(ctx context.Context, f feed) error {
	isLive := !f.fromStart
	o := bus.FollowOptions{
		Stream:         f.stream,
		LastPerSubject: f.lastPerSubject,
		New:            !f.fromStart,
		CaughtUp: func() {
			isLive = true
			g.hub.start()
		},
	}
	return g.bus.Follow(ctx, o, func(r bus.Record) error {
		g.apply(r)
		if isLive {
			g.announce(r)
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
		g.history.Store(new(g.history.Load().apply(e)))
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
}

// announce sends a record to every live client whose filter it matches.
func (g *Gateway) announce(r bus.Record) {
	if g.notifier != nil {
		g.notifier.take(r.Event)
	}
	kind := kindOf(r.Event)
	if kind == "" {
		return
	}
	g.metrics.events.WithLabelValues(kind).Inc()
	if err := g.hub.send(kind, r); err != nil {
		g.log.Warn("skipped a live event that cannot be encoded", "subject", r.Subject, "error",
			err)
	}
}
