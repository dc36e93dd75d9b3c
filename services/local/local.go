// Package local runs a whole cluster on one machine: NATS, ClickHouse and all services.
//
// Start opens the parts of an Instance, and Run works until its context ends. The trainer and the
// ClickHouse engine are child processes, so that neither delays an answer. All other parts run in
// this process. NATS and ClickHouse may also be external. A lock on the data directory prevents a
// second instance; only the owner can read the directory. Without a ClickHouse engine, all parts
// except SQL work. DIR/run/endpoints.json has the addresses for other processes.
package local

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/server"
	"courier/collector"
	"courier/gateway"
	"courier/schemas"
	"courier/services"
	"courier/store"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are the options of Start. The tags are those of the flags of courier all. A port of 0 is any
// free one; -1 is the usual port of the service, or a free one if that is in use.
type Options struct {
	Data               string        `help:"Data directory." default:"courier-data" type:"path" env:"COURIER_DATA"`
	NATSPort           int           `name:"nats-port" help:"Port of NATS; 0: any free port; -1: 4222, or a free port if it is taken." default:"-1" env:"COURIER_NATS_PORT"`
	HTTPPort           int           `name:"http-port" help:"Port of REST and the page; 0: any free port; -1: 8080, or a free port if it is taken." default:"-1" env:"COURIER_HTTP_PORT"`
	ClickHouseHTTPPort int           `name:"clickhouse-http-port" help:"HTTP port of the embedded ClickHouse; 0: any free port; -1: 8123, or a free port if it is taken." default:"-1" env:"COURIER_CLICKHOUSE_HTTP_PORT"`
	ClickHouseTCPPort  int           `name:"clickhouse-tcp-port" help:"Native port of the embedded ClickHouse; 0: any free port; -1: 9000, or a free port if it is taken." default:"-1" env:"COURIER_CLICKHOUSE_TCP_PORT"`
	Engine             string        `help:"Embed ClickHouse, downloaded once with npm (auto), or run without SQL (off)." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary      string        `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
	SyncAlways         bool          `name:"nats-sync-always" help:"Write each event to disk before it is acknowledged: safe against power loss, but slower." env:"COURIER_NATS_SYNC_ALWAYS"`
	Node               string        `group:"node" help:"Name of this node (default: its host name)." env:"COURIER_NODE"`
	Interval           time.Duration `help:"Time between two samples of the node." default:"2s" env:"COURIER_INTERVAL"`
	AllowedHosts       []string      `name:"allowed-host" sep:"," help:"Host names of the gateway besides localhost and IP addresses; * allows any. Protects against DNS rebinding; not needed with --tokens or TLS." env:"COURIER_ALLOWED_HOST"`
	Notify             string        `placeholder:"URL" help:"Send notifications to this webhook, in the format of Slack: jobs at risk, their all-clears, lost jobs, missed SLOs, drifts, and runs that are not learned from." env:"COURIER_NOTIFY"`

	Version    string                           `kong:"-"`
	Printf     func(format string, args ...any) `kong:"-"` // prints a message for the user
	NATS       bus.Options                      `kong:"-"` // external servers; without a URL a server is embedded
	ClickHouse store.Options                    `kong:"-"` // external server; without a URL the engine is embedded
	Advisor    advisor.Options                  `kong:"-"`

	// TrainerArgs is the sub-command of this program that runs the trainer, with its flags; empty:
	// no trainer. TrainerStderr receives its log.
	TrainerArgs   []string  `kong:"-"`
	TrainerStderr io.Writer `kong:"-"`

	Grace time.Duration `kong:"-"` // for all parts together to stop; 0: services.Grace
}

// Instance is a running cluster.
type Instance struct {
	o        Options
	log      *slog.Logger
	registry *prometheus.Registry
	unlock   func() // releases the data directory

	server   *server.Server // nil with external NATS
	bus      *bus.Bus
	advisor  *advisor.Advisor
	trainer  *services.Child                // nil without a trainer
	database atomic.Pointer[store.Database] // nil until it is open
	listener net.Listener                   // of the gateway
	groups   []services.Group

	last Endpoints // of the previous process on the data directory

	noSQL atomic.Pointer[string] // why SQL is not available; nil if it is, or may be soon

	mu        sync.Mutex
	endpoints Endpoints
}

// Start opens all parts except SQL. The caller then calls Run.
func Start(ctx context.Context, o Options, log *slog.Logger) (*Instance, error) {
	unlock, err := services.LockDir(o.Data)
	if err != nil {
		return nil, err
	}
	i := &Instance{o: o, log: log, registry: services.NewRegistry(), unlock: unlock}
	if i.last, err = ReadEndpoints(o.Data); err != nil && !errors.Is(err, ErrNeverRan) {
		log.Warn("previous ports are not known", "error", err)
	}
	for _, step := range []func(context.Context) error{
		i.startNATS,
		i.build,
		func(context.Context) error { return i.changeEndpoints(func(*Endpoints) {}) },
	} {
		if err := step(ctx); err != nil {
			i.abandon()
			return nil, err
		}
	}
	return i, nil
}

// abandon closes the parts that a failed start has opened.
func (i *Instance) abandon() {
	if i.bus != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = i.bus.Close(ctx) // Nothing was published.
	}
	if i.server != nil {
		i.server.Stop()
	}
	if i.listener != nil {
		_ = i.listener.Close() // It has served no request.
	}
	i.unlock()
}

// startNATS starts the embedded server, or connects to the external ones.
func (i *Instance) startNATS(ctx context.Context) error {
	o := i.o.NATS
	if o.URL == "" {
		if err := i.startServer(ctx); err != nil {
			return err
		}
		o = bus.Options{InProcess: i.server}
		i.endpoints.NATSURL = i.server.URL()
	} else {
		i.endpoints.NATSURL = bus.WithoutSecrets(o.URL)
	}
	o.Name = "courier-all"
	var err error
	if i.bus, err = bus.Connect(ctx, o, i.log, i.registry); err != nil {
		return err
	}
	return i.bus.AwaitPrepared(ctx)
}

func (i *Instance) startServer(ctx context.Context) error {
	port, err := i.choosePort(ctx, "nats", "--nats-port", i.o.NATSPort, 4222, i.last.NATSURL)
	if err != nil {
		return err
	}
	i.server, err = server.New(server.Options{
		DataDir:    filepath.Join(i.o.Data, "nats"),
		Port:       port,
		SyncAlways: i.o.SyncAlways,
	}, i.log)
	if err != nil {
		return err
	}
	return i.server.Start(ctx)
}

// portOf returns the port of an address, 0 if it has none.
func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port()) // empty without one
	return port
}

// choosePort returns a free port, and prints a message if it is not the usual one. last is the address of
// the previous process.
func (i *Instance) choosePort(ctx context.Context, part, flag string, given, usual int, last string) (int, error) {
	p := services.Port{Flag: flag, Given: given, Default: usual, Last: portOf(last)}
	port, note, err := p.Choose(ctx, "127.0.0.1")
	if note != "" {
		i.o.Printf("%s: %s", part, note)
	}
	return port, err
}

// build creates the services. They start in this order and stop in reverse order:
//
//	nats server ◄─ connection ◄─ engine, store ◄─ collector, trainer, advisor ◄─ gateway
func (i *Instance) build(ctx context.Context) error {
	workers, err := i.workers()
	if err != nil {
		return err
	}
	front, err := i.gateway(ctx)
	if err != nil {
		return err
	}
	if i.server != nil {
		i.groups = append(i.groups, services.Group{{Name: "nats server", Run: i.server.Wait}})
	}
	i.groups = append(i.groups,
		services.Group{{Name: "nats connection", Run: i.bus.Run}},
		services.Group{{Name: "sql", Run: i.runSQL}},
		workers,
		front)
	return nil
}

func (i *Instance) workers() (services.Group, error) {
	node := i.o.Node
	if node == "" {
		var err error
		if node, err = schemas.LocalNodeName(); err != nil {
			return nil, err
		}
	}
	c, err := collector.New(i.bus, collector.Options{
		Node:     node,
		Interval: i.o.Interval,
		SpoolDir: SpoolDir(i.o.Data),
	}, i.log, i.registry)
	if err != nil {
		return nil, err
	}
	i.advisor = advisor.New(i.bus, i.o.Advisor, i.log, i.registry)

	group := services.Group{
		{Name: "collector", Run: c.Run},
		{Name: "advisor", Run: i.advisor.Run},
	}
	if i.trainer = i.newTrainer(); i.trainer != nil {
		group = append(group, services.Part{Name: "trainer", Run: i.trainer.Run})
	}
	return group, nil
}

// newTrainer returns the trainer as a child process, so that a fit delays neither the goroutines of
// the advisor nor its garbage collector.
func (i *Instance) newTrainer() *services.Child {
	if len(i.o.TrainerArgs) == 0 {
		return nil
	}
	address := i.o.NATS.URL
	if i.server != nil {
		address = i.server.URL()
	}
	return services.NewChild(services.ChildOptions{
		Name:   "trainer",
		Args:   i.o.TrainerArgs,
		Env:    []string{"COURIER_NATS_URL=" + address}, // The URL may have a password.
		Stderr: i.o.TrainerStderr,
	}, i.log, i.registry)
}

func (i *Instance) gateway(ctx context.Context) (services.Group, error) {
	g, err := gateway.New(i.bus, gateway.Options{
		Outward: gateway.Outward{Notify: i.o.Notify}, Ready: i.ready, Gatherer: i.gatherer(), Version: i.o.Version,
		ClickHouseURL: func() string { return i.Endpoints().ClickHouseHTTPURL }, AllowedHosts: i.o.AllowedHosts,
	}, i.log, i.registry)
	if err != nil {
		return nil, err
	}
	port := services.Port{
		Flag: "--http-port", Given: i.o.HTTPPort, Default: 8080, Last: portOf(i.last.HTTPURL),
	}
	l, note, err := port.Listen(ctx, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	if note != "" {
		i.o.Printf("http: %s", note)
	}
	i.listener, i.endpoints.HTTPURL = l, "http://"+l.Addr().String()

	serve := func(ctx context.Context) error { return services.ServeHTTP(ctx, l, g.Handler()) }
	return services.Group{{Name: "gateway", Run: g.Run}, {Name: "http", Run: serve}}, nil
}

// ready returns nil when the advisor answers and the trainer runs.
func (i *Instance) ready() error {
	if err := i.advisor.Ready(); err != nil || i.trainer == nil {
		return err
	}
	return i.trainer.Ready()
}

// gatherer returns the metrics of this process and of the trainer.
func (i *Instance) gatherer() prometheus.Gatherer {
	if i.trainer == nil {
		return i.registry
	}
	return prometheus.Gatherers{i.registry, i.trainer}
}

// Run works until ctx ends, and then stops all parts.
func (i *Instance) Run(ctx context.Context) error {
	defer i.unlock()
	return services.Run(ctx, i.log, i.o.Grace, i.groups...)
}

// RunWith is Run, and calls main when all parts are ready. The context of main ends when a part
// fails. The parts stop when main returns.
func (i *Instance) RunWith(ctx context.Context, main func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- i.Run(ctx)
		cancel()
	}()
	if !i.AwaitReady(ended) {
		return <-ended
	}
	err := main(ctx)
	cancel()
	return cmp.Or(<-ended, err)
}

// AwaitReady waits until the advisor answers and the trainer runs. It returns false if Run ended
// before; ended then still has the error of Run.
func (i *Instance) AwaitReady(ended chan error) bool {
	waits := []<-chan struct{}{i.advisor.Answering()}
	if i.trainer != nil {
		waits = append(waits, i.trainer.Started())
	}
	for _, ready := range waits {
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
			return false
		}
	}
	return true
}

// Bus returns the connection to NATS. It is closed when Run ends.
func (i *Instance) Bus() *bus.Bus { return i.bus }

// Trainer returns the process of the trainer; nil without a trainer.
func (i *Instance) Trainer() *services.Child { return i.trainer }

// Database returns the tables; nil until they are ready, or without SQL.
func (i *Instance) Database() *store.Database { return i.database.Load() }

// SpoolDir returns the directory for events that cannot be published, in a data directory.
func SpoolDir(dataDir string) string { return filepath.Join(dataDir, "spool") }
