package main

import (
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/store"
)

type storeRebuildCommand struct {
	natsFlags
	outputFlags
	ClickHouseURL string `name:"clickhouse-url" help:"ClickHouse whose tables are made anew, such as clickhouse://user:password@host:9000/courier." required:"" env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	BatchMessages int `help:"Most events in one batch." default:"${batch_messages}" env:"COURIER_BATCH_MESSAGES"`
}

// Help is the rest of what --help says.
func (c *storeRebuildCommand) Help() string {
	return "Takes out of the tables what they hold of the events that the log still has, replays the log, and then compares both as courier store verify does. What the log has " +
		"dropped by age stays in the tables, and counts in the roll-ups. A database that was lost is made anew. No store may run meanwhile; one that is started after a rebuild " +
		"died finishes it."
}

// Run rebuilds, verifies and prints what verify found.
func (c *storeRebuildCommand) Run(w *world) error {
	return compare(w, c.natsFlags, c.clickHouseFlags.options(c.ClickHouseURL), c.Output, store.VerifyOptions{}, func(b *bus.Bus, d *store.Database, p *progress) error {
		begin := time.Now()
		if err := store.Rebuild(w.ctx, b, d, w.log, store.RebuildOptions{MaxMessages: c.BatchMessages, Progress: p.draw}); err != nil {
			return err
		}
		p.end()
		if c.Output != "json" {
			fmt.Fprintf(w.stdout, "Rebuilt from the log in %s.\n", schemas.FormatSeconds(time.Since(begin).Seconds()))
		}
		return nil
	})
}
