package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Options says where the server is, and who connects. Of the files the zero value
// means none: no TLS but what the URL asks for, no user but the URL's.
type Options struct {
	URL       string                     // such as "nats://127.0.0.1:4222"; several are separated by commas
	InProcess nats.InProcessConnProvider // a server in this process; wins over URL
	Name      string                     // of the connection, as the server shows it
	Replicas  int                        // NATS servers that keep a copy of each stream and bucket, 1 to 5; the least, as in schemas.Stream; 0: as declared there

	CAFile            string // certificates in PEM of the authorities that sign the server's; given, nothing but TLS is spoken
	CertFile, KeyFile string // the client's own certificate and key in PEM, where the server asks for one
	SeedFile          string // seed of the user's nkey, which proves who connects
	User              string // whose seed it is; default the name of the file up to its first dot

	// Person: the user submits, cancels and tells of jobs of his own, by subjects that
	// carry his name; the advisor lets nobody do that to the jobs of another.
	Person bool
}

// Bus is a connection to NATS that speaks schemas.
type Bus struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	metrics *metrics
	least   int // Options.Replicas
	own     own
	user    string   // who this connection is; "": the server does not ask
	person  bool     // speaks of his own jobs only
	asking  sync.Map // *asked to context.CancelCauseFunc: messages whose answer is waited for
}

// retryDelay is the pause between two attempts to connect.
const retryDelay = 250 * time.Millisecond

// A server that is cut off says nothing: after pingsOut pings without an answer, 4 to
// 6 s, the connection is given up and another server asked. The client's own measure
// is six minutes.
const (
	pingEvery = 2 * time.Second
	pingsOut  = 2
)

// Connect connects to NATS, tries again until ctx ends, and reconnects for ever
// afterwards. The error names the address; files that cannot be used are
// ErrIdentity, at once.
func Connect(ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer) (*Bus, error) {
	who, err := o.identity()
	if err != nil {
		return nil, err
	}
	b := &Bus{log: log, metrics: newMetrics(reg), least: o.Replicas}
	if o.SeedFile != "" {
		b.user, b.person = o.User, o.Person
	}
	opts := append(who,
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(retryDelay), nats.Timeout(2*time.Second),
		nats.DrainTimeout(5*time.Second), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats connection lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("nats connection is back", "url", WithoutSecrets(nc.ConnectedUrl())) }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			if s != nil {
				log.Warn("nats subscription", "subject", s.Subject, "error", err)
				return
			}
			b.refused(err)
		}),
	)
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	for warned := false; ; {
		var err error
		if b.nc, err = nats.Connect(o.URL, opts...); err == nil {
			break
		}
		err = o.reason(err)
		if !warned {
			log.Warn("nats is not there yet", "url", WithoutSecrets(o.URL), "error", err)
			warned = true
		}
		if wait(ctx, retryDelay) != nil {
			return nil, fmt.Errorf("connect to nats at %s: %w", WithoutSecrets(o.URL), err)
		}
	}
	js, err := jetstream.New(b.nc)
	if err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("use jetstream at %s: %w", WithoutSecrets(o.URL), err)
	}
	b.js = js
	return b, nil
}

// Prepare creates the streams and buckets, or changes them to what schemas
// says. It may be called by every service at every start; what was set to keep
// more than that stays.
func (b *Bus) Prepare(ctx context.Context) error {
	for _, s := range b.declaredStreams() {
		if err := b.prepareStream(ctx, s); err != nil {
			return err
		}
	}
	return b.prepareBuckets(ctx)
}

// Connected reports whether the server is reached right now.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Close sends what is buffered, lets subscriptions finish and disconnects.
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

// wait pauses for d or until ctx ends, and returns ctx's error then.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unavailable marks errors of a server that is away with CodeUnavailable.
func unavailable(err error) error {
	for _, away := range []error{nats.ErrNoResponders, nats.ErrTimeout, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded} {
		if errors.Is(err, away) {
			return fmt.Errorf("%w (%w)", &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats does not answer"}, err)
		}
	}
	return err
}
