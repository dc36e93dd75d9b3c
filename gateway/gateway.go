package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Gateway.
type Options struct {
	Outward

	// Ready returns for /readyz why the process is not ready; nil: ready if NATS is connected.
	Ready func() error
	// Gatherer provides /metrics; nil: /metrics does not exist.
	Gatherer prometheus.Gatherer
	// Version is the version of the program; "": unknown.
	Version string
	// ClickHouseURL returns the address for SQL over HTTP; nil or "": none.
	ClickHouseURL func() string
	// Tokens authenticates users; nil: every client has all rights.
	Tokens *Tokens

	// AllowedHosts lists host names of the gateway besides localhost and IP addresses; AnyHost
	// allows all. They are not checked with Tokens or TLS.
	AllowedHosts []string

	// Rate is the maximum number of requests per second of a user, or of an address without a
	// token; 0: no limit.
	Rate float64
	// BodyTimeout is the maximum time to receive a request body; 0: 10 s, which suffices for the
	// largest body over a slow connection.
	BodyTimeout time.Duration
	// WriteTimeout is the maximum time to send one event to a live client; 0: 10 s.
	WriteTimeout time.Duration
	// KeepAlive is the interval of comments on an idle live connection; 0: 15 s, less than the
	// usual idle timeout of proxies.
	KeepAlive time.Duration
}

// requestTimeout is the timeout of a request that records nothing. Replies take milliseconds, so
// that a slower service counts as unavailable.
const requestTimeout = 2 * time.Second

// submitTimeout is longer than the advisor's timeout, so that the gateway does not give up on a job
// that is still being recorded.
const submitTimeout = schemas.SubmitTimeout + requestTimeout

// Gateway serves Courier over HTTP.
type Gateway struct {
	bus     *bus.Bus
	options Options
	log     *slog.Logger
	metrics *metrics
	hub     *hub
	limiter *limiter
	nodes   *nodeTable
	history atomic.Pointer[regressorHistory] // written only by Run
	hosts   hostNames
	assets  map[string]asset

	notifier  *notifier // nil: no webhook
	nodesFull sync.Once // logs the first eviction of a node
}

// New returns a Gateway that uses the bus. It starts nothing. It returns an error if an allowed
// host is invalid. reg may be nil.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) (*Gateway, error) {
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	hosts, err := newHostNames(o.AllowedHosts)
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	assets, err := readAssets()
	if err != nil {
		return nil, fmt.Errorf("read embedded files: %w", err)
	}

	nodes := newNodeTable()
	m := newMetrics(reg, nodes)
	g := &Gateway{
		bus:     b,
		options: o,
		log:     log,
		metrics: m,
		nodes:   nodes,
		limiter: newLimiter(o.Rate),
		hosts:   hosts,
		assets:  assets,
	}
	g.history.Store(&regressorHistory{})
	g.hub = newHub(m, len(feeds))
	if o.Notify != "" {
		g.notifier = newNotifier(o.Outward, g.statusOf, log, m.notifications)
	}
	return g, nil
}

func (g *Gateway) statusOf(ctx context.Context, jobID string) (s schemas.JobStatus, err error) {
	q := schemas.JobStatusRequest{JobID: jobID}
	err = g.request(ctx, q.Subject(), &q, &s)
	return s, err
}

func (g *Gateway) request(ctx context.Context, subject string, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return g.bus.Request(ctx, subject, request, reply)
}

// requestFor sends a request in the name of the user of ctx, who may change only their own jobs.
// Without tokens, and for a cancellation by an admin, it sends the request in no name.
func (g *Gateway) requestFor(ctx context.Context, subject string, request, reply any, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	who := identityOf(ctx)
	if who.user == "" || who.role == Admin && subject == schemas.SubjectJobCancel {
		return g.bus.Request(ctx, subject, request, reply)
	}
	return g.bus.RequestFor(ctx, who.user, subject, request, reply)
}
