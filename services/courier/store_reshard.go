package main

import (
	"errors"
	"time"

	"courier/store"
)

type storeReshardCommand struct {
	natsFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of a server of the cluster, such as clickhouse://user:password@host:9000/courier." required:"" env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	clusterFlags
}

// Help returns the end of the help text.
func (c *storeReshardCommand) Help() string {
	return `Run it after the shards, weights or servers of a ClickHouse cluster have changed, and before a store
starts again. It writes the log to the old shards up to its end, copies all rows to new databases on
the current shards, compares their number and checksum, and switches the readers. No store may run
at the same time. The old servers must be available. Their databases stay. An interrupted run can
be repeated.

Example:
  courier store reshard --clickhouse-url clickhouse://courier@server-1:9000/courier \
    --clickhouse-cluster main`
}

func (c *storeReshardCommand) Run(w *environment) error {
	if c.Cluster == "" {
		return errors.New("--clickhouse-cluster is missing")
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	o := c.clickHouseFlags.options(c.ClickHouseURL)
	o.Timeout = time.Hour // one statement copies a table of one shard
	return store.Reshard(w.ctx, b, o, c.Cluster, w.log)
}
