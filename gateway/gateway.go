package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Gateway.
type Options struct {
	Ready         func() error        // for /readyz, why the process is not ready; nil: ready when NATS is connected
	Gatherer      prometheus.Gatherer // of /metrics; nil: /metrics is not found
	Version       string              // of the program; "" is shown as unknown
	ClickHouseURL func() string       // where SQL is answered over HTTP; nil or "": nowhere
	Tokens        *Tokens             // of the users; nil: everybody who reaches the gateway has all rights

	// AllowedHosts are names by which the gateway is reached, beside localhost and IP
	// addresses; AnyHost allows all. Not checked with Tokens or under TLS.
	AllowedHosts []string

	Rate         float64       // requests a second of one user, or of one address without a token; 0: no limit
	BodyTimeout  time.Duration // for the body of a request to arrive; 0: 10 s, the largest over a slow line
	WriteTimeout time.Duration // for one event to a client that does not read; 0: 10 s
	KeepAlive    time.Duration // between comments to a silent live client; 0: 15 s, less than the idle limit of proxies
}

// requestTimeout bounds a request that records nothing. Answers take milliseconds; after
// this time the service is away.
const requestTimeout = 2 * time.Second

// Gateway serves Courier over HTTP.
type Gateway struct {
	bus     *bus.Bus
	options Options
	log     *slog.Logger
	metrics *metrics
	feeds   []feed
	hub     *hub
	limiter *limiter
	nodes   *nodeTable
	lives   atomic.Pointer[lives] // written by Run alone
	hosts   hostNames
	assets  map[string]asset
	handler http.Handler

	nodesFull sync.Once     // the log says it once
	resuming  chan struct{} // holds a value for each client whose events are read again
}

// New returns a Gateway over the bus. It starts nothing. It fails if an allowed host is
// not a name, if the registerer has a metric of the same name, or if the embedded page is
// damaged. reg may be nil.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) (*Gateway, error) {
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 10 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	hosts, err := newHostNames(o.AllowedHosts)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	assets, err := readAssets()
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	g := &Gateway{
		bus:     b,
		options: o,
		log:     log,
		metrics: m,
		nodes:   newNodeTable(),
		limiter: newLimiter(o.Rate),
		hosts:   hosts,
		assets:  assets,
	}
	g.lives.Store(&lives{})
	g.feeds = g.newFeeds()
	g.hub = newHub(m, len(g.feeds))
	g.resuming = make(chan struct{}, maxResuming)
	g.handler = g.mux()
	return g, nil
}

// Handler returns what answers every route.
func (g *Gateway) Handler() http.Handler { return g.handler }

// Run follows the event log until ctx ends, then disconnects the live clients
// and returns nil. An error means that a stream can no longer be followed.
//
//	NODE ──────► follow ──► nodes ──┐
//	JOB ───────► follow ────────────┤
//	ADVICE ────► follow ────────────┼──► hub ──► a queue per client ──► /api/v1/events
//	REGRESSOR ─► follow ──► lives ──┘
func (g *Gateway) Run(ctx context.Context) error {
	defer g.hub.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(g.feeds))
	for i := range g.feeds {
		go func() { ended <- g.follow(ctx, i) }()
	}
	var first error
	for range g.feeds {
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

// requestFor asks a service in the name of the user of ctx, who may change only jobs
// of the same user. Without tokens, and for an administrator who cancels, it asks in no name.
func (g *Gateway) requestFor(ctx context.Context, subject string, request, reply any,
	timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	who := askerOf(ctx)
	if who.user == "" || who.role == Admin && subject == schemas.SubjectJobCancel {
		return g.bus.Request(ctx, subject, request, reply)
	}
	return g.bus.RequestFor(ctx, who.user, subject, request, reply)
}
