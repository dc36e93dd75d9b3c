package main

import (
	"fmt"
	"time"

	"courier/schemas"
	"courier/services"
	"courier/store"
)

type storeRebuildCommand struct {
	tableFlags
	outputFlags
	Streams       []string `arg:"" optional:"" name:"stream" enum:"JOB,NODE,REGRESSOR,ADVICE" help:"Streams whose tables are rebuilt: JOB, NODE, REGRESSOR or ADVICE (default: all)."`
	BatchMessages int      `help:"Maximum number of events in a batch." default:"${batch_messages}" env:"COURIER_BATCH_MESSAGES"`
}

// Help returns the end of the help text.
func (c *storeRebuildCommand) Help() string {
	return `Removes from the tables the events that the log still has, replays the log, and compares both as
courier store verify does. Events that the log has dropped by age stay in the tables and in the
roll-ups. A lost database is created again. A running store does the work; without one, this command
does. If a rebuild is interrupted, the next store finishes it.

Examples:
  courier store rebuild --data courier-data NODE
  courier store rebuild --clickhouse-url clickhouse://courier@clickhouse:9000/courier`
}

func (c *storeRebuildCommand) Run(w *environment) error {
	if err := c.locate(true); err != nil {
		return err
	}
	rebuild := func(tables tableStore, p *services.StepBar) error {
		begin := time.Now()
		if err := tables.Rebuild(w.ctx, store.RebuildOptions{
			Streams:     c.Streams,
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
	}
	return compare(w, c.tableFlags, c.outputFlags, store.VerifyOptions{}, rebuild)
}
