package main

import (
	"net"
	"os"
	"runtime"
	"sync"

	"courier/services"
	"courier/services/local"
	"courier/store"
	"courier/trainer"
)

type trainerCommand struct {
	serviceFlags
	Fits          trainer.Options `embed:""`
	ClickHouseURL string          `name:"clickhouse-url" help:"URL of ClickHouse to read examples from, such as clickhouse://user:password@host:9000/courier (default: read the event log)." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Supervised string `hidden:"" help:"Data directory of the courier all that runs this trainer. It stops when standard input closes."`
}

// niceness of the trainer, so that answers do not wait for a fit.
const niceness = 10

func (c *trainerCommand) Run(w *environment) error {
	growSlowly(w)
	o := c.Fits
	if o.Version = buildVersion(); o.Window == 0 {
		o.Window = -1 // no limit
	}
	if yields, err := services.Yield(niceness); err != nil {
		w.log.Warn("cannot lower the priority of fits", "error", err)
	} else if yields {
		o.Threads = runtime.GOMAXPROCS(0) // No other process needs the processors.
	}
	if c.Supervised != "" {
		child := *w
		child.log = w.log.With("process", "trainer")
		child.ctx = services.Supervised(w.ctx, os.Stdin)
		c.listening = func(address net.Addr) error { return services.Announce(w.stdout, address) }
		w = &child
	}
	return c.serve(w, "trainer", func(r *serviceEnvironment) (builtService, error) {
		past := &pastRuns{env: r, flags: c.clickHouseFlags, dataDir: c.Supervised}
		if c.ClickHouseURL != "" {
			if err := past.open(c.ClickHouseURL); err != nil {
				return builtService{}, err
			}
		}
		history := past.history
		if c.ClickHouseURL == "" && c.Supervised == "" {
			history = nil // Examples come from the log alone.
		}
		t := trainer.New(r.bus, history, o, r.log, r.reg)
		return builtService{part: services.Part{Name: "trainer", Run: t.Run}}, nil
	})
}

// pastRuns reads examples from ClickHouse, whose URL a courier all only knows after its start.
type pastRuns struct {
	env     *serviceEnvironment
	flags   clickHouseFlags
	dataDir string // of the courier all

	mu sync.Mutex
	h  *store.History // nil until the URL is known
}

// open sets the ClickHouse to read from. It does not connect yet.
func (r *pastRuns) open(url string) error {
	d, err := store.Open(r.env.ctx, r.flags.options(url), r.env.log, r.env.reg)
	if err != nil {
		return err
	}
	r.h = store.NewHistory(d)
	return nil
}

// history returns nil until the URL is known; then only the log is read.
func (r *pastRuns) history() trainer.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h != nil {
		return r.h
	}
	e, err := local.ReadEndpoints(r.dataDir)
	if err == nil && e.ClickHouseNativeURL == "" {
		return nil
	}
	url := e.ClickHouseNativeURL
	if err == nil && e.ClickHouseUser != "" { // its queries have tighter limits than the store's
		url, err = storeURL(r.dataDir, e, true)
	}
	if err == nil {
		err = r.open(url)
	}
	if err != nil {
		r.env.log.Warn("reading examples from the event log only", "error", err)
		return nil
	}
	return r.h
}
