package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/synadia-io/orbit.go/natscontext"
)

// Bus is a connection to NATS that publishes and reads the messages of schemas.
type Bus struct {
	nc          *nats.Conn
	js          jetstream.JetStream
	log         *slog.Logger
	metrics     *metrics
	address     string
	minReplicas int  // Options.Replicas
	isPerson    bool // Options.Person
	permissions permissions
	api         string // prefix of the subjects of the JetStream API, with its trailing dot
}

const retryDelay = 250 * time.Millisecond

// A server that is cut off closes no connection. After maxPingsOut unanswered pings, 4 to
// 6 s, the client drops the connection and tries another server. The client's default takes
// six minutes.
const (
	pingInterval = 2 * time.Second
	maxPingsOut  = 2
)

// ReconnectBuffer is the number of bytes that the client keeps while it is not connected: none, because a
// message whose sender was told that it failed must not be sent later.
const ReconnectBuffer = -1

// Connect connects to NATS. It retries until ctx ends. A lost connection is always re-established.
// The error names the address. If a file cannot be used, Connect fails at once with
// ErrIdentity.
func Connect(ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer) (*Bus, error) {
	credentials, err := o.credentials()
	if err != nil {
		return nil, err
	}
	b := &Bus{log: log, metrics: newMetrics(reg), address: WithoutSecrets(o.URL), minReplicas: o.Replicas}
	b.permissions.log = log
	if o.isNamed() {
		b.permissions.user, b.isPerson = o.User, o.Person
	}

	opts := append(credentials, b.connectionOptions(o.Name)...)
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	if err := b.dial(ctx, &o, opts); err != nil {
		return nil, err
	}

	b.api = jetstream.DefaultAPIPrefix
	if o.Domain != "" {
		b.api = "$JS." + o.Domain + ".API."
	}
	b.js, err = jetstream.NewWithAPIPrefix(b.nc, b.api)
	if err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("use jetstream at %s: %w", b.address, err)
	}
	return b, nil
}

// Address returns the URLs with which the bus was connected, without secrets.
func (b *Bus) Address() string { return b.address }

func (b *Bus) connectionOptions(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(retryDelay),
		nats.ReconnectBufSize(ReconnectBuffer),
		nats.Timeout(2 * time.Second),
		nats.DrainTimeout(5 * time.Second),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPingsOut),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("nats connection lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			b.log.Info("nats connection is back", "url", WithoutSecrets(nc.ConnectedUrl()))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			if s != nil {
				b.log.Warn("nats subscription", "subject", s.Subject, "error", err)
				return
			}
			b.permissions.violated(err)
		}),
	}
}

func (b *Bus) dial(ctx context.Context, o *Options, opts []nats.Option) error {
	for warned := false; ; warned = true {
		var err error
		if b.nc, err = b.open(o, opts); err == nil || errors.Is(err, ErrIdentity) {
			return err
		}
		err = o.explain(err)
		if !warned {
			b.log.Warn("nats is not reachable yet", "url", WithoutSecrets(o.URL), "error", err)
		}
		if Sleep(ctx, retryDelay) != nil {
			where := "at " + WithoutSecrets(o.URL)
			if o.Context != "" {
				where = "by context " + o.Context
			}
			return fmt.Errorf("connect to nats %s: %w", where, err)
		}
	}
}

// open connects once, to the servers of the context if there is one. A context that cannot be read is an
// ErrIdentity. An option is applied only after the context was read, which shows whether reading failed.
func (b *Bus) open(o *Options, opts []nats.Option) (*nats.Conn, error) {
	if o.Context == "" {
		return nats.Connect(o.URL, opts...)
	}
	isRead := false
	nc, settings, err := natscontext.Connect(o.Context, append(opts, func(*nats.Options) error {
		isRead = true
		return nil
	})...)
	if !isRead {
		return nil, fmt.Errorf("%w: context of the nats CLI: %w", ErrIdentity, err)
	}
	if err != nil {
		return nil, err
	}
	o.Domain = cmp.Or(settings.JSDomain, o.Domain)
	b.address = WithoutSecrets(settings.URL)
	return nc, nil
}

// awaitConnection waits until the server is connected, because a message is not buffered before.
func (b *Bus) awaitConnection(ctx context.Context) error {
	if b.nc.IsConnected() {
		return nil
	}
	changed := b.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer b.nc.RemoveStatusListener(changed)
	if b.nc.IsConnected() || b.nc.IsClosed() {
		return nil
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run keeps the connection open until ctx ends, and then closes it within three seconds.
func (b *Bus) Run(ctx context.Context) error {
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	return b.Close(closing)
}

// Connected reports whether the connection to the server is up.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Connections returns how often the client has connected.
func (b *Bus) Connections() uint64 { return b.nc.Stats().Reconnects + 1 }

// Close sends buffered messages, lets subscriptions finish and disconnects.
func (b *Bus) Close(ctx context.Context) error {
	if b.nc.IsClosed() {
		return nil
	}
	closed := make(chan struct{})
	b.nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if err := b.nc.Drain(); err != nil { // not connected: nothing to drain
		b.nc.Close()
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		b.nc.Close()
		return fmt.Errorf("drain the nats connection: %w", ctx.Err())
	}
}

var unavailableErrors = []error{
	nats.ErrNoResponders,
	nats.ErrTimeout,
	nats.ErrConnectionClosed,
	nats.ErrDisconnected,
	nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded,
	jetstream.ErrNoStreamResponse,
	context.DeadlineExceeded,
}

// unavailable gives the errors of a server that does not answer the code CodeUnavailable.
func unavailable(err error) error {
	isCause := func(cause error) bool { return errors.Is(err, cause) }
	if !slices.ContainsFunc(unavailableErrors, isCause) {
		return err
	}
	wire := &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats does not answer"}
	if errors.Is(err, nats.ErrNoResponders) {
		wire.Message = "no JetStream answers in this account and domain"
	}
	return fmt.Errorf("%w (%w)", wire, err)
}

func isRevisionConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// Sleep pauses for d. If ctx ends first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
