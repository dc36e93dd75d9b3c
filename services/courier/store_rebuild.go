package main

import (
	"fmt"
	"time"

	"courier/schemas"
	"courier/services"
	"courier/store"
)

type storeRebuildCommand struct {
	natsFlags
	outputFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of the ClickHouse to rebuild, such as clickhouse://user:password@host:9000/courier." required:"" env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	clusterFlags
	BatchMessages int `help:"Maximum number of events in a batch." default:"${batch_messages}" env:"COURIER_BATCH_MESSAGES"`
}

// Help returns the end of the help text.
func (c *storeRebuildCommand) Help() string {
	return `Removes from the tables the events that the log still has, replays the log, and compares both as
courier store verify does. Events that the log has dropped by age stay in the tables and in the
roll-ups. A lost database is created again. No store may run at the same time. If a rebuild is
interrupted, the next store finishes it.

Example:
  courier store rebuild --clickhouse-url clickhouse://courier@clickhouse:9000/courier`
}

func (c *storeRebuildCommand) Run(w *environment) error {
	database := c.clickHouseFlags.options(c.ClickHouseURL)
	return compare(w, c.natsFlags, database, c.clusterFlags, c.outputFlags,
		store.VerifyOptions{}, func(tables tableStore, p *services.StepBar) error {
			begin := time.Now()
			if err := tables.Rebuild(w.ctx, store.RebuildOptions{
				MaxMessages: c.BatchMessages,
				Progress:    p.Draw,
			}); err != nil {
				return err
			}
			p.End()
			if c.Output != "json" {
				fmt.Fprintf(w.stdout, "Rebuilt from the log in %s.\n",
					schemas.FormatSeconds(time.Since(begin).Seconds()))
			}
			return nil
		})
}
