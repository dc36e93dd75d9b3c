package main

import (
	"fmt"

	"courier/store"
)

type storeSchemaCommand struct {
	Cluster string `name:"clickhouse-cluster" help:"Name of a ClickHouse cluster that the statements are for: replicated and distributed tables, ON CLUSTER. Default: one server." env:"COURIER_CLICKHOUSE_CLUSTER"`
}

// Help is the rest of what --help says.
func (c *storeSchemaCommand) Help() string {
	return "Prints the SQL that makes the tables and views, for who makes them by hand: one server has them made by the store when it starts. What is printed for a cluster was parsed " +
		"by ClickHouse, and not run on a cluster yet; see docs/howto/clickhouse-cluster.md."
}

// Run prints.
func (c *storeSchemaCommand) Run(w *world) error {
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
