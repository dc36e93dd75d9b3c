package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"courier/bus"
	"courier/services"

	"github.com/prometheus/client_golang/prometheus"
)

// natsFlags say where NATS is.
type natsFlags struct {
	NATSURL string `name:"nats-url" help:"NATS servers, separated by commas." default:"nats://127.0.0.1:4222" env:"COURIER_NATS_URL"`
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
	b, err := bus.Connect(ctx, bus.Options{URL: f.NATSURL, Name: "courier", Replicas: r.NATSReplicas}, w.log, nil)
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
	HTTPAddress string `name:"http-address" help:"Address of /metrics, /healthz and /readyz, such as :9100; empty: none." default:"" env:"COURIER_HTTP_ADDRESS"`
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
	b, err := bus.Connect(w.ctx, bus.Options{URL: f.NATSURL, Name: "courier-" + name, Replicas: f.NATSReplicas}, w.log, reg)
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
				return fmt.Errorf("nats at %s is away", f.NATSURL)
			}
			return ready()
		})
	}
	if f.HTTPAddress != "" {
		l, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", f.HTTPAddress)
		if err != nil {
			return fmt.Errorf("--http-address %s: %w", f.HTTPAddress, err)
		}
		w.log.Info("http is served", "address", l.Addr().String())
		group = append(group, services.Part{Name: "http", Run: func(ctx context.Context) error { return services.ServeHTTP(ctx, l, handler) }})
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
