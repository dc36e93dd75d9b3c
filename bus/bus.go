package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Options names the server and the user of a connection. Without any of the files, only the URL
// determines whether the connection uses TLS and credentials.
type Options struct {
	URL       string                     // such as "nats://127.0.0.1:4222"; comma-separated
	InProcess nats.InProcessConnProvider // a server in this process; takes precedence over URL
	Name      string                     // connection name that the server shows

	// Replicas is the minimum number of NATS servers that keep a copy of each stream and
	// bucket, 1 to 5. 0 means the number that schemas.Stream declares.
	Replicas int

	// CAFile holds PEM certificates of the authorities that sign the server's certificate.
	// If set, TLS is required.
	CAFile string

	// CertFile and KeyFile hold the client's certificate and key in PEM, for servers that
	// require them.
	CertFile, KeyFile string

	SeedFile string // nkey seed of the user
	User     string // user of the seed; default: the name of SeedFile up to its first dot

	// Person limits the user to jobs that the user owns. Submissions, cancellations and
	// events go to subjects with the user's name, and the advisor checks the ownership.
	Person bool
}

// Bus is a connection to NATS that publishes and reads the messages of schemas.
type Bus struct {
	nc          *nats.Conn
	js          jetstream.JetStream
	log         *slog.Logger
	metrics     *metrics
	minReplicas int // Options.Replicas
	published   publishedEvents
	user        string   // "" if the server requires no authentication
	isPerson    bool     // Options.Person
	pending     sync.Map // *pendingSend to context.CancelCauseFunc
}

// retryDelay is the pause between two attempts to connect.
const retryDelay = 250 * time.Millisecond

// A server that is cut off closes no connection. After maxPingsOut unanswered pings, 4 to
// 6 s, the client drops the connection and tries another server. The client's default takes
// six minutes.
const (
	pingInterval = 2 * time.Second
	maxPingsOut  = 2
)

// Connect connects to NATS. It retries until ctx ends. A lost connection is always re-established.
// The error names the address. If a file cannot be used, Connect fails at once with
// ErrIdentity.
func Connect(
	ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer,
) (*Bus, error) {
	credentials, err := o.credentials()
	if err != nil {
		return nil, err
	}
	b := &Bus{log: log, metrics: newMetrics(reg), minReplicas: o.Replicas}
	if o.SeedFile != "" {
		b.user, b.isPerson = o.User, o.Person
	}

	opts := append(credentials, b.connectionOptions(o.Name)...)
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	if err := b.dial(ctx, &o, opts); err != nil {
		return nil, err
	}

	b.js, err = jetstream.New(b.nc)
	if err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("use jetstream at %s: %w", WithoutSecrets(o.URL), err)
	}
	return b, nil
}

// connectionOptions are the client options that do not depend on the user.
func (b *Bus) connectionOptions(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(retryDelay),
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
			b.cancelForbidden(err)
		}),
	}
}

// dial connects, and retries until ctx ends.
func (b *Bus) dial(ctx context.Context, o *Options, opts []nats.Option) error {
	for warned := false; ; warned = true {
		var err error
		if b.nc, err = nats.Connect(o.URL, opts...); err == nil {
			return nil
		}
		err = o.explain(err)
		if !warned {
			b.log.Warn("nats is not reachable yet", "url", WithoutSecrets(o.URL), "error", err)
		}
		if sleep(ctx, retryDelay) != nil {
			return fmt.Errorf("connect to nats at %s: %w", WithoutSecrets(o.URL), err)
		}
	}
}

// Prepare creates the streams and buckets, or changes them to the settings that schemas
// declares. Every service may call it at every start. Limits that keep more than declared
// stay.
func (b *Bus) Prepare(ctx context.Context) error {
	for _, s := range b.declaredStreams() {
		if err := b.prepareStream(ctx, s); err != nil {
			return err
		}
	}
	return b.prepareBuckets(ctx)
}

// AwaitPrepared calls Prepare until it succeeds or ctx ends: JetStream may not be ready yet.
func (b *Bus) AwaitPrepared(ctx context.Context) error {
	for {
		trial, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := b.Prepare(trial)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		b.log.Warn("streams are not ready, retrying", "error", err)
		if sleep(ctx, 500*time.Millisecond) != nil {
			return err
		}
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

// sleep pauses for d. If ctx ends first, it returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unavailableErrors are the client's errors for a server that does not answer.
var unavailableErrors = []error{
	nats.ErrNoResponders,
	nats.ErrTimeout,
	nats.ErrConnectionClosed,
	nats.ErrDisconnected,
	nats.ErrConnectionReconnecting,
	jetstream.ErrNoStreamResponse,
	context.DeadlineExceeded,
}

// unavailable gives the errors of a server that does not answer the code CodeUnavailable.
// Other errors stay as they are.
func unavailable(err error) error {
	isCause := func(cause error) bool { return errors.Is(err, cause) }
	if !slices.ContainsFunc(unavailableErrors, isCause) {
		return err
	}
	wire := &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats does not answer"}
	return fmt.Errorf("%w (%w)", wire, err)
}
