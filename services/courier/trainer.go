package main

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"courier/services"
	"courier/store"
	"courier/trainer"
)

// trainerFlags say when the trainer fits.
type trainerFlags struct {
	NewEpochs     int           `help:"Fit after that many new epochs." default:"40" env:"COURIER_NEW_EPOCHS"`
	RefitEvery    time.Duration `help:"Fit that often, if there are new epochs." default:"24h" env:"COURIER_REFIT_EVERY"`
	CoolDown      time.Duration `help:"Least time between two fits that nobody asked for." default:"5s" env:"COURIER_COOL_DOWN"`
	ExampleWindow time.Duration `help:"Learn from what did not happen longer ago; 0: from all that is kept." default:"0" env:"COURIER_EXAMPLE_WINDOW"`
	MostExamples  int           `help:"Fit on that many examples at most: the newest of each setting; on one of each setting if those are more." default:"10000" env:"COURIER_MOST_EXAMPLES"`
	Trees         int           `help:"Trees of each forest." default:"200" env:"COURIER_TREES"`
	Seed          uint64        `help:"Of all that is random in a fit." default:"1" env:"COURIER_SEED" name:"fit-seed"`
}

func (f trainerFlags) options() trainer.Options {
	return trainer.Options{Version: buildVersion(), NewEpochs: f.NewEpochs, Every: f.RefitEvery, CoolDown: f.CoolDown, Window: f.ExampleWindow, Examples: f.MostExamples, Trees: f.Trees, Seed: f.Seed}
}

type trainerCommand struct {
	serviceFlags
	trainerFlags
	OnlyIdle      bool   `help:"Fit only while a processor has nothing else to do (Linux): answers of an advisor beside it hardly wait, but where jobs keep all processors busy a fit takes for ever." env:"COURIER_ONLY_IDLE"`
	ClickHouseURL string `name:"clickhouse-url" help:"ClickHouse to recall examples from, such as clickhouse://user:password@host:9000/courier; empty: from the event log." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
}

// niceness of a trainer's process: whoever answers requests goes before who fits.
const niceness = 10

func (c *trainerCommand) Run(w *world) error {
	o := c.trainerFlags.options()
	if yields, err := services.Yield(niceness, c.OnlyIdle); err != nil {
		w.log.Warn("fits may delay others on this machine", "error", err)
	} else if yields {
		o.Threads = runtime.GOMAXPROCS(0) // nobody waits for them
	}
	return c.serve(w, "trainer", func(r *room) (services.Part, func() error, http.Handler, error) {
		var past recollection
		if c.ClickHouseURL != "" {
			d, err := store.Open(r.ctx, c.clickHouseFlags.options(c.ClickHouseURL), r.log, r.reg)
			if err != nil {
				return services.Part{}, nil, nil, err
			}
			past.set(store.NewHistory(d))
		}
		t := trainer.New(r.bus, past.history, o, r.log, r.reg)
		return services.Part{Name: "trainer", Run: t.Run}, func() error { return nil }, nil, nil
	})
}

// recollection is the database's past, which may come later than the trainer.
type recollection struct{ h atomic.Pointer[store.History] }

func (r *recollection) set(h *store.History) { r.h.Store(h) }

func (r *recollection) history() trainer.History {
	if h := r.h.Load(); h != nil {
		return h
	}
	return nil
}
