package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"courier/store"
)

// storeCommands are the service that writes the tables, which is the default, and the tools for the
// tables.
type storeCommands struct {
	Serve     storeCommand          `cmd:"" default:"withargs" help:"Run the store, which writes the event log to ClickHouse (the default command)."`
	Verify    storeVerifyCommand    `cmd:"" help:"Compare the tables with the log."`
	Rebuild   storeRebuildCommand   `cmd:"" help:"Fill all tables again from the log."`
	Retention storeRetentionCommand `cmd:"" help:"Show or change how long each table keeps its rows."`
	Schema    storeSchemaCommand    `cmd:"" help:"Print the SQL of the tables, for one server or a cluster."`
}

type storeRetentionCommand struct {
	tableFlags
	outputFlags
	Set        map[string]string `help:"New retention of a table in days, such as node_sample=30d, or forever. Repeat the flag for each table. Without --apply, only what would be deleted is shown." placeholder:"TABLE=AGE"`
	Apply      bool              `help:"Change the retentions of --set."`
	DeleteRows bool              `name:"delete-rows" help:"Change them even if that deletes rows that are kept now."`
}

func (c *storeRetentionCommand) Help() string {
	return `Shows how long each table keeps its rows, and changes it on request. ClickHouse deletes older rows in
the background; their events may still be in the log. A change that would delete rows is refused
without --delete-rows. courier store verify does not report deleted rows as missing.

Examples:
  courier store retention --data courier-data
  courier store retention --data courier-data --set node_sample=30d
  courier store retention --data courier-data --set node_sample=30d --apply --delete-rows`
}

func (c *storeRetentionCommand) Run(w *environment) error {
	wanted, err := store.ParseRetentions(c.Set)
	if err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	if c.Apply && len(wanted) == 0 {
		return errors.New("--apply needs --set")
	}
	if err := c.locate(c.Apply); err != nil {
		return err
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	o := c.clickHouseFlags.options(c.ClickHouseURL)
	o.Timeout = 9 * time.Minute // the rows are counted
	tables, err := c.open(w.ctx, b, o, w.log, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tables.Close() }() // The process ends.

	var all []store.Retention
	if c.Apply {
		all, err = store.ApplyRetentions(w.ctx, tables.Databases(), wanted, c.DeleteRows)
	} else {
		all, err = store.ReadRetentions(w.ctx, tables.Databases(), wanted)
	}
	if errors.Is(err, store.ErrDeletesRows) {
		return fmt.Errorf("%w: nothing was changed; add --delete-rows to delete them", err)
	}
	if err != nil {
		return err
	}
	return c.print(w.stdout, all, func(out io.Writer) error {
		return store.WriteRetentions(out, all)
	})
}

type storeSchemaCommand struct {
	Cluster string `name:"clickhouse-cluster" help:"Name of a ClickHouse cluster: print the statements for each of its servers (default: one server)." env:"COURIER_CLICKHOUSE_CLUSTER"`
}

func (c *storeSchemaCommand) Help() string {
	return `Prints the SQL that creates the tables and views of an empty database. The store runs it at
its first start: on a cluster, each statement on all servers before the next one. For a cluster it
prints replicated tables; a store creates plain ones if no shard has a second replica. At an
upgrade, the store changes existing tables by itself.

Example:
  courier store schema --clickhouse-cluster production`
}

func (c *storeSchemaCommand) Run(w *environment) error {
	statements, err := store.Schema(c.Cluster)
	if err != nil {
		return fmt.Errorf("--clickhouse-cluster: %w", err)
	}
	for _, s := range statements {
		if _, err := fmt.Fprintf(w.stdout, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
