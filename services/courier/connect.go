package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/services"
	"courier/store"

	"github.com/prometheus/client_golang/prometheus"
)

// natsFlags say where NATS is, and who connects.
type natsFlags struct {
	NATSURL string `name:"nats-url" help:"NATS servers, separated by commas." default:"nats://127.0.0.1:4222" env:"COURIER_NATS_URL"`
	identityFlags
}

// identityFlags say who connects to NATS, and how the server is known. All are
// names of files, so that no secret stands in a command line.
type identityFlags struct {
	NATSCA   string `name:"nats-ca" help:"File with the certificates (PEM) of the authorities that sign NATS's; with it nothing but TLS is spoken." env:"COURIER_NATS_CA"`
	NATSCert string `name:"nats-cert" help:"File with the certificate (PEM) to show to NATS, where it asks for one." env:"COURIER_NATS_CERT"`
	NATSKey  string `name:"nats-key" help:"File with the key of --nats-cert." env:"COURIER_NATS_KEY"`
	NATSNkey string `name:"nats-nkey" help:"File with the seed of the nkey that proves to NATS who connects." env:"COURIER_NATS_NKEY"`
	NATSUser string `name:"nats-user" help:"Whose seed that is (default: the name of its file up to the first dot)." env:"COURIER_NATS_USER"`
}

// options are those of a connection of a service or of the cluster's operator.
func (f identityFlags) options(url, name string) bus.Options {
	return bus.Options{URL: url, Name: name, CAFile: f.NATSCA, CertFile: f.NATSCert, KeyFile: f.NATSKey, SeedFile: f.NATSNkey, User: f.NATSUser}
}

// person are the options of a connection of a person: who is not the operator
// submits, cancels and tells of his own jobs.
func (f identityFlags) person(url, name string) bus.Options {
	o := f.options(url, name)
	if o.User == "" {
		o.User = bus.UserOf(o.SeedFile)
	}
	o.Person = o.User != schemas.Operator
	return o
}

// asker is who asks: a person asks for himself, whatever else he is called.
func (f identityFlags) asker(user string) string {
	if o := f.person("", ""); f.NATSNkey != "" && o.Person {
		return o.User
	}
	return user
}

// clickHouseFlags are what no address of ClickHouse should carry.
type clickHouseFlags struct {
	ClickHouseCA           string `name:"clickhouse-ca" help:"File with the certificates (PEM) of the authorities that sign ClickHouse's; with it nothing but TLS is spoken." env:"COURIER_CLICKHOUSE_CA"`
	ClickHousePasswordFile string `name:"clickhouse-password-file" help:"File with the password of the user of --clickhouse-url." env:"COURIER_CLICKHOUSE_PASSWORD_FILE"`
}

func (f clickHouseFlags) options(url string) store.Options {
	return store.Options{URL: url, CAFile: f.ClickHouseCA, PasswordFile: f.ClickHousePasswordFile}
}

// connectTimeout is how long a tool for people waits for NATS.
const connectTimeout = 3 * time.Second

// replicaFlags say how many NATS servers keep the log.
type replicaFlags struct {
	NATSReplicas int `name:"nats-replicas" help:"NATS servers that keep a copy of each stream and bucket, 1 to 5. The least: what has more stays so." default:"1" env:"COURIER_NATS_REPLICAS"`
}

// Validate refuses what NATS would.
func (f replicaFlags) Validate() error {
	if f.NATSReplicas < 1 || f.NATSReplicas > 5 {
		return fmt.Errorf("--nats-replicas %d: want 1 to 5", f.NATSReplicas)
	}
	return nil
}

// connect connects a tool: soon, or an error that says what to do.
func (f natsFlags) connect(w *world) (*bus.Bus, error) { return f.connectReplicated(w, replicaFlags{}) }

// connectReplicated is connect of a tool that looks at streams.
func (f natsFlags) connectReplicated(w *world, r replicaFlags) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(w.ctx, connectTimeout)
	defer cancel()
	o := f.person(f.NATSURL, "courier")
	o.Replicas = r.NATSReplicas
	b, err := bus.Connect(ctx, o, w.log, nil)
	if errors.Is(err, bus.ErrIdentity) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; start one with courier all, or name yours with --nats-url", err)
	}
	return b, nil
}

// closeBus drains the connection within a second.
func closeBus(b *bus.Bus) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.Close(ctx) // the process ends anyhow
}

// serviceFlags are those of every service.
type serviceFlags struct {
	natsFlags
	replicaFlags
	HTTPAddress string                       `name:"http-address" help:"Address of /metrics, /healthz and /readyz, such as :9100; empty: none." default:"" env:"COURIER_HTTP_ADDRESS"`
	tls         *tls.Config                  // of that address; nil: plain HTTP
	listening   func(address net.Addr) error // called once it listens; may be nil
}

// room is what a service's own part is made from.
type room struct {
	*world
	bus *bus.Bus
	reg *prometheus.Registry
}

// serve connects, prepares the streams and runs what build returns until the end.
func (f serviceFlags) serve(w *world, name string, build func(r *room) (part services.Part, ready func() error, handler http.Handler, err error)) error {
	reg := services.NewRegistry()
	o := f.options(f.NATSURL, "courier-"+name)
	o.Replicas = f.NATSReplicas
	b, err := bus.Connect(w.ctx, o, w.log, reg)
	if err != nil {
		if w.ctx.Err() != nil {
			return nil // stopped before NATS came
		}
		return err
	}
	if err := prepare(w, b); err != nil {
		return err
	}
	part, ready, handler, err := build(&room{w, b, reg})
	if err != nil {
		return err
	}
	group := services.Group{part}
	if handler == nil {
		handler = services.Observe(reg, func() error {
			if !b.Connected() {
				return errors.New("nats is away")
			}
			return ready()
		})
	}
	if f.HTTPAddress != "" {
		l, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", f.HTTPAddress)
		if err != nil {
			return fmt.Errorf("--http-address %s: %w", f.HTTPAddress, err)
		}
		if f.tls != nil {
			l = tls.NewListener(l, f.tls)
		}
		w.log.Info("http is served", "address", l.Addr().String(), "tls", f.tls != nil)
		group = append(group, services.Part{Name: "http", Run: func(ctx context.Context) error { return services.ServeHTTP(ctx, l, handler) }})
		if f.listening != nil {
			if err := f.listening(l.Addr()); err != nil {
				return err
			}
		}
	}
	w.log.Info("service runs", "service", name, "version", buildVersion())
	return services.Run(w.ctx, w.log, services.Group{busPart(b)}, group)
}

// busPart drains the bus when everything above it has stopped.
func busPart(b *bus.Bus) services.Part {
	return services.Part{Name: "nats connection", Run: func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		return b.Close(ending)
	}}
}

// prepare creates the streams; while JetStream is not ready it tries again.
func prepare(w *world, b *bus.Bus) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		err := b.Prepare(ctx)
		cancel()
		if err == nil || w.ctx.Err() != nil {
			return err
		}
		w.log.Warn("streams are not there yet", "error", err)
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return err
		}
	}
}
