package main

import (
	"fmt"
	"time"

	"courier/store"
)

type storeRebuildCommand struct {
	natsFlags
	outputFlags
	ClickHouseURL string `name:"clickhouse-url" help:"ClickHouse whose tables are made anew, such as clickhouse://user:password@host:9000/courier." required:"" env:"COURIER_CLICKHOUSE_URL"`
	BatchMessages int    `help:"Most events in one batch." default:"30000" env:"COURIER_BATCH_MESSAGES"`
}

// Help is the rest of what --help says.
func (c *storeRebuildCommand) Help() string {
	return "Takes out of the tables what they hold of the events that the log still has, replays the log, and then compares both as courier store verify does. What the log has " +
		"dropped by age stays in the tables, and counts in the roll-ups. A database that was lost is made anew. No store may run meanwhile; one that is started after a rebuild " +
		"died finishes it."
}

// Run rebuilds, verifies and prints what verify found.
func (c *storeRebuildCommand) Run(w *world) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	d, err := store.Open(w.ctx, store.Options{URL: c.ClickHouseURL, Timeout: 9 * time.Minute}, w.log, nil)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // the process ends anyhow
	p := &progress{out: w.stderr}
	begin := time.Now()
	if err := store.Rebuild(w.ctx, b, d, w.log, store.RebuildOptions{MaxMessages: c.BatchMessages, Progress: p.draw}); err != nil {
		p.end()
		return err
	}
	took := time.Since(begin)
	r, err := store.NewVerifier(b, d, w.log, store.VerifyOptions{Progress: p.draw}).Verify(w.ctx)
	p.end()
	if err != nil {
		return err
	}
	v := verified{Report: r}
	v.Found, v.Left = r.Different()
	v.OK = v.Left == 0
	if c.Output == "json" {
		err = indented(w.stdout, v)
	} else {
		fmt.Fprintf(w.stdout, "Rebuilt from the log in %.1f s.\n", took.Seconds())
		err = printVerified(w.stdout, v)
	}
	if err == nil && !v.OK {
		return exitStatus(1)
	}
	return err
}
