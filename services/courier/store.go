package main

import (
	"fmt"

	"courier/store"
)

// storeCommands are the service that writes the tables, which is the default, and the tools for the
// tables.
type storeCommands struct {
	Serve   storeCommand        `cmd:"" default:"withargs" help:"Run the store, which writes the event log to ClickHouse (the default command)."`
	Verify  storeVerifyCommand  `cmd:"" help:"Compare the tables with the log."`
	Rebuild storeRebuildCommand `cmd:"" help:"Fill all tables again from the log."`
	Schema  storeSchemaCommand  `cmd:"" help:"Print the SQL of the tables, for one server or a cluster."`
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
