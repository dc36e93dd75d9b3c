package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Gateway.
type Options struct {
	Ready         func() error        // why the process is not ready, for /readyz; nil: it is when NATS is reached
	Gatherer      prometheus.Gatherer // what /metrics shows; nil: /metrics is not found
	Version       string              // of the program; "" is shown as unknown
	ClickHouseURL func() string       // where SQL is answered over HTTP; nil or "": nowhere
	Tokens        *Tokens             // of those who may ask; nil: whoever reaches the gateway may do all
	Rate          float64             // requests a second of one user, or of one address without a token; 0: as many as they like
	BodyTimeout   time.Duration       // for the body of a request to arrive; 0: 10 s, the largest over a slow line
	KeepAlive     time.Duration       // between comments to a silent live client; 0: 15 s, under the usual idle limit of proxies
}

// requestTimeout is how long a service may take to answer. Advice takes
// milliseconds; who waits longer waits for a part that is away.
const requestTimeout = 2 * time.Second

// Gateway serves Courier over HTTP.
type Gateway struct {
	bus     *bus.Bus
	options Options
	log     *slog.Logger
	metrics *metrics
	hub     *hub
	limiter *limiter
	nodes   atomic.Pointer[cluster] // written by Run alone
	lives   atomic.Pointer[lives]   // written by Run alone
	assets  map[string]asset
	handler http.Handler
}

// New returns a Gateway over the bus. It starts nothing. The error is that of a
// metric which the registerer holds already, or of a damaged page. reg may be nil.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) (*Gateway, error) {
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 10 * time.Second
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	assets, err := readAssets()
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	g := &Gateway{bus: b, options: o, log: log, metrics: m, hub: newHub(m), limiter: newLimiter(o.Rate), assets: assets}
	g.nodes.Store(&cluster{})
	g.lives.Store(&lives{})
	g.handler = g.mux()
	return g, nil
}

// Handler returns what answers every route.
func (g *Gateway) Handler() http.Handler { return g.handler }

// Run follows the event log until ctx ends, then disconnects the live clients
// and returns nil. An error means that a stream can no longer be followed.
//
//	NODE ──────► follow ──► nodes ──┐
//	JOB ───────► follow ────────────┼──► hub ──► a buffer per client ──► /api/v1/events
//	REGRESSOR ─► follow ──► lives ──┘
func (g *Gateway) Run(ctx context.Context) error {
	defer g.hub.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin, known := time.Now(), false // known is all that the REGRESSOR stream held at the start; of its follower alone
	follows := []struct {
		options bus.FollowOptions
		handle  func(bus.Record)
	}{
		{bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true}, func(r bus.Record) { g.applyNode(r); g.announce(r) }},
		{bus.FollowOptions{Stream: schemas.StreamJob, New: true}, g.announce},
		{bus.FollowOptions{Stream: schemas.StreamRegressor, CaughtUp: func() { known = true }}, func(r bus.Record) {
			if g.applyRegressor(r); known || r.StoredAt.After(begin) { // what is long past is no live event
				g.announce(r)
			}
		}},
	}
	ended := make(chan error, len(follows))
	for _, f := range follows {
		go func() {
			ended <- g.bus.Follow(ctx, f.options, func(r bus.Record) error {
				f.handle(r)
				return nil
			})
		}()
	}
	var first error
	for range follows {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		cancel() // the first to return ends all
	}
	return first
}

// request asks a service and reads its reply.
func (g *Gateway) request(ctx context.Context, subject string, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return g.bus.Request(ctx, subject, request, reply)
}

// requestFor asks in the name of whoever asks: what is his own is his to change. An
// administrator may change what is another's, and without tokens everybody may.
func (g *Gateway) requestFor(ctx context.Context, subject string, request, reply any) error {
	who := askerOf(ctx)
	if who.user == "" || who.role == Admin && subject == schemas.SubjectJobCancel {
		return g.request(ctx, subject, request, reply)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return g.bus.RequestFor(ctx, who.user, subject, request, reply)
}
