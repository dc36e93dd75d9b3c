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

func (c *storeSchemaCommand) Run(w *environment) error {
	statements, err := store.Schema(c.Cluster)
	if err != nil {
		return usagef("--clickhouse-cluster: %w", err)
	}
	for _, s := range statements {
		if _, err := fmt.Fprintf(w.stdout, "%s;\n\n", s); err != nil {
			return err
		}
	}
	return nil
}
