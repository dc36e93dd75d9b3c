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

type natsFlags struct {
	NATSURL string `name:"nats-url" group:"nats" help:"NATS servers, separated by commas." default:"nats://127.0.0.1:4222" env:"COURIER_NATS_URL"`
	identityFlags
}

// identityFlags are the credentials for NATS.
type identityFlags struct{ bus.Identity }

// options returns the options of a connection of a service or of the operator.
func (f identityFlags) options(url, name string) bus.Options {
	return bus.Options{URL: url, Name: name, Identity: f.Identity}
}

// person returns the options of a connection of a person, who only has access to their own jobs,
// unless the person is the operator.
func (f identityFlags) person(url, name string) bus.Options {
	o := f.options(url, name)
	if o.User == "" {
		o.User = bus.UserOf(o.SeedFile)
	}
	o.Person = o.User != schemas.Operator
	return o
}

// asker returns the user of a request. With the nkey of a person it is always that person.
func (f identityFlags) asker(user string) string {
	if o := f.person("", ""); f.SeedFile != "" && o.Person {
		return o.User
	}
	return user
}

type clickHouseFlags struct {
	ClickHouseCA           string `name:"clickhouse-ca" group:"clickhouse" help:"File with the certificates (PEM) of the authorities of the ClickHouse servers. Requires TLS." env:"COURIER_CLICKHOUSE_CA"`
	ClickHousePasswordFile string `name:"clickhouse-password-file" group:"clickhouse" help:"File with the password of the user of --clickhouse-url." env:"COURIER_CLICKHOUSE_PASSWORD_FILE"`
}

func (f clickHouseFlags) options(url string) store.Options {
	return store.Options{URL: url, CAFile: f.ClickHouseCA, PasswordFile: f.ClickHousePasswordFile}
}

// connectTimeout bounds how long an interactive command waits for NATS.
const connectTimeout = 3 * time.Second

type replicaFlags struct {
	NATSReplicas int `name:"nats-replicas" help:"Minimum number of replicas of each stream and bucket, 1 to 5; higher existing values are kept." default:"1" env:"COURIER_NATS_REPLICAS"`
}

// Validate checks the limits of NATS.
func (f replicaFlags) Validate() error {
	if f.NATSReplicas < 1 || f.NATSReplicas > 5 {
		return fmt.Errorf("--nats-replicas %d: want 1 to 5", f.NATSReplicas)
	}
	return nil
}

// connect connects an interactive command within connectTimeout.
func (f natsFlags) connect(w *environment) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(w.ctx, connectTimeout)
	defer cancel()
	b, err := bus.Connect(ctx, f.person(f.NATSURL, "courier"), w.log, nil)
	if err == nil || errors.Is(err, bus.ErrIdentity) {
		return b, err
	}
	unavailable := schemas.Errorf(schemas.CodeUnavailable, "", "%s", err)
	if f.Context == "" && !errors.Is(err, bus.ErrAuthorization) {
		unavailable.Message += "; start one with courier all, or set --nats-url"
	}
	return nil, unavailable
}

// closeBus drains the connection within a second.
func closeBus(b *bus.Bus) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.Close(ctx) // The process ends.
}

type serviceFlags struct {
	natsFlags
	replicaFlags
	HTTPAddress string                       `name:"http-address" help:"Address of /metrics, /healthz and /readyz, such as :9100; empty: do not serve them." default:"" env:"COURIER_HTTP_ADDRESS"`
	tls         *tls.Config                  // of HTTPAddress; nil: plain HTTP
	listening   func(address net.Addr) error // called when it listens; may be nil
}

type serviceEnvironment struct {
	*environment
	bus *bus.Bus
	reg *prometheus.Registry
}

// builtService is a service that can run in this process.
type builtService struct {
	part    services.Part
	ready   func() error // returns why the service is not ready; nil: always ready
	handler http.Handler // nil: metrics, health and readiness
}

// serve connects, creates the streams and runs the service until the context ends.
func (f serviceFlags) serve(
	w *environment, name string, build func(*serviceEnvironment) (builtService, error),
) error {
	reg := services.NewRegistry()
	o := f.options(f.NATSURL, "courier-"+name)
	o.Replicas = f.NATSReplicas
	b, err := bus.Connect(w.ctx, o, w.log, reg)
	if err != nil {
		if w.ctx.Err() != nil {
			return nil // It was stopped before NATS was available.
		}
		return err
	}
	if err := b.AwaitPrepared(w.ctx); err != nil {
		return err
	}
	s, err := build(&serviceEnvironment{w, b, reg})
	if err != nil {
		return err
	}
	group := services.Group{s.part}
	if s.handler == nil {
		s.handler = services.Observe(reg, func() error {
			if !b.Connected() {
				return errors.New("not connected to nats")
			}
			if s.ready == nil {
				return nil
			}
			return s.ready()
		})
	}
	if f.HTTPAddress != "" {
		part, err := f.httpPart(w, s.handler)
		if err != nil {
			return err
		}
		group = append(group, part)
	}
	w.log.Info("service started", "service", name, "version", buildVersion())
	return services.Run(w.ctx, w.log, 0, services.Group{{Name: "nats connection", Run: b.Run}}, group)
}

func (f serviceFlags) httpPart(w *environment, handler http.Handler) (services.Part, error) {
	l, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", f.HTTPAddress)
	if err != nil {
		return services.Part{}, fmt.Errorf("--http-address %s: %w", f.HTTPAddress, err)
	}
	if f.tls != nil {
		l = tls.NewListener(l, f.tls)
	}
	w.log.Info("serving http", "address", l.Addr().String(), "tls", f.tls != nil)
	if f.listening != nil {
		if err := f.listening(l.Addr()); err != nil {
			return services.Part{}, err
		}
	}
	serve := func(ctx context.Context) error { return services.ServeHTTP(ctx, l, handler) }
	return services.Part{Name: "http", Run: serve}, nil
}
