package main

import (
	"fmt"

	"courier/store"
)

type storeSchemaCommand struct {
	Cluster string `name:"clickhouse-cluster" help:"Name of a ClickHouse cluster: print replicated and distributed tables with ON CLUSTER (default: one server)." env:"COURIER_CLICKHOUSE_CLUSTER"`
}

// Help returns the end of the help text.
func (c *storeSchemaCommand) Help() string {
	return `Prints the SQL that creates the tables and views. On a single server the store runs it at its
start. The statements for a cluster were parsed by ClickHouse, but not yet run on a cluster; see
docs/howto/clickhouse-cluster.md.

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
