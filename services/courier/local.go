package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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
	"courier/store/engine"

	"github.com/prometheus/client_golang/prometheus"
)

// localFlags are the flags of a cluster in one process.
type localFlags struct {
	Data               string `help:"Data directory." default:"courier-data" type:"path" env:"COURIER_DATA"`
	NATSPort           int    `name:"nats-port" help:"Port of NATS; 0: any free one (default: 4222, or a free one)." default:"-1" env:"COURIER_NATS_PORT"`
	HTTPPort           int    `name:"http-port" help:"Port of REST and the page; 0: any free one (default: 8080, or a free one)." default:"-1" env:"COURIER_HTTP_PORT"`
	ClickHouseHTTPPort int    `name:"clickhouse-http-port" help:"HTTP port of the embedded ClickHouse; 0: any free one (default: 8123, or a free one)." default:"-1" env:"COURIER_CLICKHOUSE_HTTP_PORT"`
	ClickHouseTCPPort  int    `name:"clickhouse-tcp-port" help:"Native port of the embedded ClickHouse; 0: any free one (default: 9000, or a free one)." default:"-1" env:"COURIER_CLICKHOUSE_TCP_PORT"`
	ExternalNATS       string `name:"nats-url" help:"URL of NATS servers to use instead of an embedded one." env:"COURIER_NATS_URL"`
	identityFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of a ClickHouse to use instead of an embedded one, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Engine        string        `help:"Embed ClickHouse, downloaded once with npm (auto), or run without SQL (off)." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary string        `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
	SyncAlways    bool          `name:"nats-sync-always" help:"Write each event to disk before it is acknowledged: safe against power loss, but slower." env:"COURIER_NATS_SYNC_ALWAYS"`
	Node          string        `help:"Name of this node (default: its host name)." env:"COURIER_NODE"`
	Interval      time.Duration `help:"Time between two samples of the node." default:"2s" env:"COURIER_INTERVAL"`
	Trainer       string        `help:"Fit in a child process with low priority (on), or leave fits to a courier trainer elsewhere (off)." enum:"on,off" default:"on" env:"COURIER_TRAINER"`
	hostFlags
	admissionFlags
	trainerFlags
}

// Endpoints are the addresses of a local cluster, stored in DIR/run/endpoints.json.
type Endpoints struct {
	NATSURL             string `json:"nats_url"`
	HTTPURL             string `json:"http_url"`
	ClickHouseHTTPURL   string `json:"clickhouse_http_url,omitempty"`
	ClickHouseNativeURL string `json:"clickhouse_native_url,omitempty"`
	ClickHouseDatabase  string `json:"clickhouse_database,omitempty"`
	ClickHouseUser      string `json:"clickhouse_user,omitempty"`     // read-only
	ClickHousePassword  string `json:"clickhouse_password,omitempty"` // of that user; only the owner can read the file
}

// local is a whole cluster: one process, and children for the trainer and the ClickHouse engine.
type local struct {
	*world
	f       localFlags
	say     func(format string, args ...any) // prints a line for the user
	reg     *prometheus.Registry
	server  *server.Server // nil with external NATS
	bus     *bus.Bus
	advisor *advisor.Advisor
	trainer *services.Child                // nil with --trainer=off
	db      atomic.Pointer[store.Database] // nil until it is open
	release func()
	http    net.Listener
	groups  []services.Group
	grace   time.Duration // for all groups together to stop

	mu        sync.Mutex
	endpoints Endpoints
	sqlReady  chan struct{} // closed when SQL is available, or never will be
	sqlOnce   sync.Once
	sqlWhy    string // why SQL is not available
}

// startLocal opens all parts except the engine. The caller then calls run, which works until ctx
// ends.
func startLocal(w *world, f localFlags, say func(string, ...any)) (*local, error) {
	release, err := services.LockDir(f.Data)
	if err != nil {
		return nil, err
	}
	l := &local{
		world: w, f: f, say: say, reg: services.NewRegistry(), release: release,
		grace: services.Grace, sqlReady: make(chan struct{}),
	}
	for _, step := range []func() error{
		l.startNATS,
		l.build,
		func() error { return l.writeEndpoints(func(*Endpoints) {}) },
	} {
		if err := step(); err != nil {
			l.abandon()
			return nil, err
		}
	}
	return l, nil
}

// abandon closes the parts that a failed start has opened.
func (l *local) abandon() {
	if l.bus != nil {
		closeBus(l.bus)
	}
	if l.server != nil {
		l.server.Stop()
	}
	if l.http != nil {
		_ = l.http.Close() // It has served no request.
	}
	l.release()
}

// startNATS starts the embedded server, or connects to the external one.
func (l *local) startNATS() error {
	o := bus.Options{Name: "courier-all"}
	if l.f.ExternalNATS == "" {
		port, note, err := services.Port{
			Flag:    "--nats-port",
			Given:   l.f.NATSPort,
			Default: 4222,
		}.Choose(l.ctx, "127.0.0.1")
		if err != nil {
			return err
		}
		if note != "" {
			l.say("nats: %s", note)
		}
		l.server, err = server.New(server.Options{
			DataDir:    filepath.Join(l.f.Data, "nats"),
			Port:       port,
			SyncAlways: l.f.SyncAlways,
		}, l.log)
		if err != nil {
			return err
		}
		if err := l.server.Start(l.ctx); err != nil {
			return err
		}
		o.InProcess = l.server
		l.endpoints.NATSURL = l.server.URL()
	} else {
		o = l.f.identityFlags.options(l.f.ExternalNATS, "courier-all")
		l.endpoints.NATSURL = bus.WithoutSecrets(l.f.ExternalNATS)
	}
	var err error
	if l.bus, err = bus.Connect(l.ctx, o, l.log, l.reg); err != nil {
		return err
	}
	return prepare(l.world, l.bus)
}

// build creates the services. They start in this order and stop in reverse order:
//
//	nats server ◄─ connection ◄─ engine, store ◄─ collector, trainer, advisor ◄─ gateway
func (l *local) build() error {
	node := l.f.Node
	if node == "" {
		var err error
		if node, err = schemas.LocalNodeName(); err != nil {
			return err
		}
	}
	c, err := collector.New(l.bus, collector.Options{
		Node:     node,
		Interval: l.f.Interval,
		SpoolDir: l.spoolDir(),
	}, l.log, l.reg)
	if err != nil {
		return err
	}
	l.advisor = advisor.New(l.bus, advisor.Options{
		Version:   semanticVersion(),
		Admission: l.f.Admission,
		Promise:   schemas.Promise(l.f.Promise),
	}, l.log, l.reg)
	work := services.Group{{Name: "collector", Run: c.Run}, {Name: "advisor", Run: l.advisor.Run}}
	if l.trainer, err = l.newTrainer(); err != nil {
		return err
	}
	if l.trainer != nil {
		work = append(work, services.Part{Name: "trainer", Run: l.trainer.Run})
	}
	g, err := gateway.New(l.bus, gateway.Options{
		Ready:         l.ready,
		Gatherer:      l.gatherer(),
		Version:       buildVersion(),
		ClickHouseURL: l.clickHouseURL,
		AllowedHosts:  l.f.AllowedHosts,
	}, l.log, l.reg)
	if err != nil {
		return err
	}
	var note string
	if l.http, note, err = (services.Port{
		Flag:    "--http-port",
		Given:   l.f.HTTPPort,
		Default: 8080,
	}).Listen(l.ctx, "127.0.0.1"); err != nil {
		return err
	}
	if note != "" {
		l.say("http: %s", note)
	}
	l.endpoints.HTTPURL = "http://" + l.http.Addr().String()
	if l.server != nil {
		l.groups = append(l.groups, services.Group{{Name: "nats server", Run: l.server.Wait}})
	}
	l.groups = append(l.groups,
		services.Group{busPart(l.bus)},
		services.Group{{Name: "sql", Run: l.sql}},
		work,
		services.Group{{Name: "gateway", Run: g.Run}, {
			Name: "http",
			Run: func(ctx context.Context) error {
				return services.ServeHTTP(ctx, l.http, g.Handler())
			},
		}})
	return nil
}

// spoolDir is the directory for events of jobs that cannot be published.
func (l *local) spoolDir() string { return filepath.Join(l.f.Data, "spool") }

// run works until ctx ends.
func (l *local) run(ctx context.Context) error {
	defer l.release()
	return services.RunWithin(ctx, l.log, l.grace, l.groups...)
}

// sql runs the engine and the store until ctx ends. Without an engine it reports that once and
// waits, because the other parts work without SQL.
func (l *local) sql(ctx context.Context) error {
	defer l.noSQL("stopped")
	if l.f.ClickHouseURL != "" {
		return l.store(ctx, l.f.ClickHouseURL, Endpoints{ClickHouseNativeURL: l.f.ClickHouseURL})
	}
	if l.f.Engine == "off" {
		l.noSQL("--engine=off")
		<-ctx.Done()
		return nil
	}
	library, err := l.library(ctx)
	if err != nil {
		if l.f.EngineLibrary != "" {
			return err
		}
		l.noSQL(err.Error())
		if ctx.Err() == nil {
			l.say("SQL is off: %s", err)
		}
		<-ctx.Done()
		return nil
	}
	o := engine.Options{
		DataDir: filepath.Join(l.f.Data, "clickhouse"),
		Library: library,
		Getenv:  l.getenv,
	}
	for _, p := range []struct {
		port *int
		services.Port
	}{
		{
			&o.HTTPPort,
			services.Port{
				Flag:    "--clickhouse-http-port",
				Given:   l.f.ClickHouseHTTPPort,
				Default: 8123,
			},
		},
		{
			&o.TCPPort,
			services.Port{
				Flag:    "--clickhouse-tcp-port",
				Given:   l.f.ClickHouseTCPPort,
				Default: 9000,
			},
		},
	} {
		var note string
		if *p.port, note, err = p.Choose(ctx, "127.0.0.1"); err != nil {
			return err
		}
		if note != "" {
			l.say("clickhouse: %s", note)
		}
	}
	e, err := engine.New(o, l.log, l.reg)
	if err != nil {
		return err
	}
	return services.Run(ctx, l.log, services.Group{{
		Name: "engine",
		Run:  e.Run,
	}}, services.Group{{Name: "store", Run: func(ctx context.Context) error {
		at, err := e.Ready(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return l.store(ctx, storeURL(at), Endpoints{
			ClickHouseHTTPURL:   at.HTTPURL,
			ClickHouseNativeURL: at.NativeURL,
			ClickHouseDatabase:  at.Database,
			ClickHouseUser:      at.ReaderUser,
			ClickHousePassword:  at.ReaderPassword,
		})
	}}})
}

// storeURL returns the URL of the embedded engine for the store.
func storeURL(at engine.Endpoint) string {
	u, err := url.Parse(at.NativeURL)
	if err != nil {
		return at.NativeURL // The store reports the error.
	}
	u.User, u.Path = url.UserPassword(at.User, at.Password), "/"+at.Database
	return u.String()
}

// library finds the library of the engine, or downloads it once per user.
func (l *local) library(ctx context.Context) (string, error) {
	found, err := engine.FindLibrary(l.f.EngineLibrary, l.getenv)
	if errors.Is(err, engine.ErrNotFound) && l.f.EngineLibrary == "" {
		if _, npm := exec.LookPath("npm"); npm != nil {
			return "", err
		}
		l.say("SQL needs the ClickHouse engine: downloading 178 MB with npm, once (--engine=off" +
			" skips it)")
		found, err = engine.Install(ctx, engine.InstallOptions{})
	}
	return found.Path, err
}

// store migrates the tables and writes events to them until ctx ends.
func (l *local) store(ctx context.Context, url string, opened Endpoints) error {
	o := store.Options{URL: url}
	if l.f.ClickHouseURL != "" {
		o = l.f.clickHouseFlags.options(url)
	}
	d, err := store.Open(ctx, o, l.log, l.reg)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // Nothing is written any more.
	if err := d.Migrate(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	l.db.Store(d)
	if l.trainer != nil {
		l.trainer.SetInput(url)
	}
	err = l.writeEndpoints(func(e *Endpoints) {
		opened.NATSURL, opened.HTTPURL = e.NATSURL, e.HTTPURL
		*e = opened
	})
	if err != nil {
		return err
	}
	if opened.ClickHouseHTTPURL != "" {
		l.say("sql       courier sql --data %s 'SELECT * FROM jobs' (%s, %s)", l.f.Data,
			opened.ClickHouseHTTPURL, opened.ClickHouseNativeURL)
	}
	l.sqlOnce.Do(func() { close(l.sqlReady) })
	return store.New(l.bus, d, l.log, l.reg, o).Run(ctx)
}

// noSQL records why SQL is not available, and ends all waits for it.
func (l *local) noSQL(why string) {
	l.sqlOnce.Do(func() {
		l.mu.Lock()
		l.sqlWhy = why
		l.mu.Unlock()
		close(l.sqlReady)
	})
}

func (l *local) clickHouseURL() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoints.ClickHouseHTTPURL
}

// writeEndpoints changes the endpoints, and replaces their file atomically.
func (l *local) writeEndpoints(change func(*Endpoints)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.endpoints)
	dir := filepath.Join(l.f.Data, "run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create %s: %w", dir, err)
	}
	data, err := json.MarshalIndent(l.endpoints, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "endpoints.json")
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(name+".new", name)
}
