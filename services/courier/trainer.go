package main

import (
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"courier/services"
	"courier/store"
	"courier/trainer"
)

// trainerFlags say when the trainer fits.
type trainerFlags struct {
	Method        string        `help:"How regressors are fitted: evidence predicts each model by its own runs; families fits one regressor for all models by the best of forest and laws." enum:",evidence,families" default:"evidence" env:"COURIER_METHOD"`
	NewEpochs     int           `help:"Fit after that many new epochs." default:"40" env:"COURIER_NEW_EPOCHS"`
	RefitEvery    time.Duration `help:"Fit that often, if there are new epochs." default:"24h" env:"COURIER_REFIT_EVERY"`
	CoolDown      time.Duration `help:"Minimum time between two fits that nobody asked for." default:"1s" env:"COURIER_COOL_DOWN"`
	ExampleWindow time.Duration `help:"Learn only from what happened within this time (0: no limit). Imported runs may be years old." default:"87600h" env:"COURIER_EXAMPLE_WINDOW"`
	SettingRuns   int           `help:"Maximum number of ended runs kept for each configuration: model, batch size, CPUs, load and node type." default:"1000" env:"COURIER_SETTING_RUNS"`
	HistoryRuns   int           `help:"Maximum number of ended runs kept in memory. Beyond it, the oldest runs of the most frequent configurations are dropped." default:"50000" env:"COURIER_HISTORY_RUNS"`
	HistoryEpochs int           `help:"Maximum number of epochs of ended runs kept in memory." default:"200000" env:"COURIER_HISTORY_EPOCHS"`
	MostExamples  int           `help:"Fit on that many examples at most: the newest of each setting; on one of each setting if those are more." default:"10000" env:"COURIER_MOST_EXAMPLES"`
	Trees         int           `help:"Trees of each forest." default:"200" env:"COURIER_TREES"`
	Seed          uint64        `help:"Of all that is random in a fit." default:"1" env:"COURIER_SEED" name:"fit-seed"`
}

func (f trainerFlags) options() trainer.Options {
	window := f.ExampleWindow
	if window == 0 {
		window = -1 // no limit
	}
	return trainer.Options{
		Version:   buildVersion(),
		Method:    trainer.Method(f.Method),
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
		Trees:    f.Trees,
		Seed:     f.Seed,
	}
}

type trainerCommand struct {
	serviceFlags
	trainerFlags
	OnlyIdle      bool   `help:"Fit only while a processor has nothing else to do (Linux): answers of an advisor beside it hardly wait, but where jobs keep all processors busy a fit takes for ever." env:"COURIER_ONLY_IDLE"`
	ClickHouseURL string `name:"clickhouse-url" help:"ClickHouse to recall examples from, such as clickhouse://user:password@host:9000/courier; empty: from the event log." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Supervised bool `hidden:"" help:"Stop when standard input closes, and read the ClickHouse URL from it."`
}

// niceness of the trainer's process, so that answers do not wait for a fit.
const niceness = 10

func (c *trainerCommand) Run(w *world) error {
	o := c.trainerFlags.options()
	if yields, err := services.Yield(niceness, c.OnlyIdle); err != nil {
		w.log.Warn("fits may delay others on this machine", "error", err)
	} else if yields {
		o.Threads = runtime.GOMAXPROCS(0) // no other process waits for them
	}
	urls := make(chan string, 1) // the newest address of ClickHouse
	if c.Supervised {
		w = c.supervise(w, urls)
	}
	return c.serve(w, "trainer", func(r *room) (services.Part, func() error, http.Handler, error) {
		past := &recollection{room: r, flags: c.clickHouseFlags, urls: urls}
		if c.ClickHouseURL != "" {
			if err := past.open(c.ClickHouseURL); err != nil {
				return services.Part{}, nil, nil, err
			}
		}
		history := past.history
		if c.ClickHouseURL == "" && !c.Supervised {
			history = nil // all comes from the log
		}
		t := trainer.New(r.bus, history, o, r.log, r.reg)
		return services.Part{Name: "trainer", Run: t.Run}, func() error { return nil }, nil, nil
	})
}

// supervise returns the world of a trainer that is a child of courier all: it ends
// with its parent, and reads addresses of ClickHouse from standard input into urls.
func (c *trainerCommand) supervise(w *world, urls chan string) *world {
	child := *w
	child.log = w.log.With("process", "trainer")
	child.ctx = services.Supervised(w.ctx, os.Stdin, func(line string) {
		select {
		case <-urls: // an older one
		default:
		}
		urls <- line
	})
	c.listening = func(address net.Addr) error { return services.Announce(w.stdout, address) }
	return &child
}

// recollection is the history in ClickHouse, whose address may come after the start.
type recollection struct {
	room  *room
	flags clickHouseFlags
	urls  <-chan string // the address, where the flags name none

	mu sync.Mutex
	h  *store.History // nil while there is no address
}

// open reads from the ClickHouse at url from now on. It does not connect yet.
func (r *recollection) open(url string) error {
	d, err := store.Open(r.room.ctx, r.flags.options(url), r.room.log, r.room.reg)
	if err != nil {
		return err
	}
	r.h = store.NewHistory(d)
	return nil
}

// history returns nil while no address is known: then the log is read alone.
func (r *recollection) history() trainer.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h != nil {
		return r.h
	}
	select {
	case url := <-r.urls:
		if err := r.open(url); err != nil {
			r.room.log.Warn("examples come from the event log alone", "error", err)
			return nil
		}
		return r.h
	default:
		return nil
	}
}
