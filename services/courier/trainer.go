package main

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"courier/services"
	"courier/services/local"
	"courier/store"
	"courier/trainer"
)

type trainerFlags struct {
	NewEpochs     int           `help:"Fit after this number of new epochs." default:"40" env:"COURIER_NEW_EPOCHS"`
	RefitEvery    time.Duration `help:"Fit at this interval if there are new epochs." default:"24h" env:"COURIER_REFIT_EVERY"`
	CoolDown      time.Duration `help:"Minimum time between two automatic fits." default:"1s" env:"COURIER_COOL_DOWN"`
	ExampleWindow time.Duration `help:"Only use runs of this most recent period; 0: no limit. Imported runs may be years old." default:"87600h" env:"COURIER_EXAMPLE_WINDOW"`
	SettingRuns   int           `name:"configuration-runs" help:"Maximum number of ended runs kept for each configuration: model, dataset, batch size, CPUs, load and node type." default:"1000" env:"COURIER_CONFIGURATION_RUNS"`
	HistoryRuns   int           `help:"Maximum number of ended runs kept in memory. Beyond it, the trainer drops the oldest runs of the configurations with the most runs." default:"50000" env:"COURIER_HISTORY_RUNS"`
	HistoryEpochs int           `help:"Maximum number of epochs of ended runs kept in memory." default:"200000" env:"COURIER_HISTORY_EPOCHS"`
	MostExamples  int           `help:"Maximum number of examples of a fit: the newest of each configuration, and at least one of each." default:"10000" env:"COURIER_MOST_EXAMPLES"`
}

func (f trainerFlags) options() trainer.Options {
	window := f.ExampleWindow
	if window == 0 {
		window = -1 // no limit
	}
	return trainer.Options{
		Version:   buildVersion(),
		NewEpochs: f.NewEpochs,
		Every:     f.RefitEvery,
		CoolDown:  f.CoolDown,
		Window:    window,
		Limits: trainer.Limits{
			SettingRuns: f.SettingRuns,
			Runs:        f.HistoryRuns,
			Epochs:      f.HistoryEpochs,
		},
		Examples: f.MostExamples,
	}
}

type trainerCommand struct {
	serviceFlags
	trainerFlags
	OnlyIdle      bool   `help:"Only fit while a processor is idle (Linux). An advisor on the same node then answers without delay, but a fit never ends where jobs keep all processors busy." env:"COURIER_ONLY_IDLE"`
	ClickHouseURL string `name:"clickhouse-url" help:"URL of ClickHouse to read examples from, such as clickhouse://user:password@host:9000/courier (default: read the event log)." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Supervised string `hidden:"" help:"Data directory of the courier all that runs this trainer. It stops when standard input closes."`
}

// niceness of the trainer, so that answers do not wait for a fit.
const niceness = 10

func (c *trainerCommand) Run(w *environment) error {
	growSlowly(w)
	o := c.trainerFlags.options()
	if yields, err := services.Yield(niceness, c.OnlyIdle); err != nil {
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
