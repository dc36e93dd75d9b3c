package main

import (
	"context"
	"log/slog"

	"courier/bus"
	"courier/store"

	"github.com/prometheus/client_golang/prometheus"
)

// clusterFlags select a ClickHouse cluster.
type clusterFlags struct {
	Cluster string `name:"clickhouse-cluster" help:"Name of a ClickHouse cluster with shards, in the remote_servers of the server of --clickhouse-url (default: one server)." env:"COURIER_CLICKHOUSE_CLUSTER"`
}

// tableStore writes and compares the tables of a server or a cluster.
type tableStore interface {
	Migrate(ctx context.Context) error
	Run(ctx context.Context) error
	Verify(ctx context.Context, o store.VerifyOptions) (*store.Report, error)
	Rebuild(ctx context.Context, o store.RebuildOptions) error
	Databases() []*store.Database
	Close() error
}

// open opens the tables of the cluster, or of the single server. A cluster must be available.
func (f clusterFlags) open(
	ctx context.Context, b *bus.Bus, o store.Options, log *slog.Logger, reg prometheus.Registerer,
) (tableStore, error) {
	if f.Cluster != "" {
		return store.OpenCluster(ctx, b, o, f.Cluster, log, reg)
	}
	d, err := store.Open(ctx, o, log, reg)
	if err != nil {
		return nil, err
	}
	return &serverTables{Database: d, bus: b, options: o, log: log, reg: reg}, nil
}

// serverTables are the tables of a single server.
type serverTables struct {
	*store.Database
	bus     *bus.Bus
	options store.Options
	log     *slog.Logger
	reg     prometheus.Registerer
}

// Databases returns the only database.
func (t *serverTables) Databases() []*store.Database { return []*store.Database{t.Database} }

func (t *serverTables) Run(ctx context.Context) error {
	return store.New(t.bus, t.Database, t.log, t.reg, t.options).Run(ctx)
}

func (t *serverTables) Verify(
	ctx context.Context, o store.VerifyOptions,
) (*store.Report, error) {
	return store.NewVerifier(t.bus, t.Database, t.log, o).Verify(ctx)
}

func (t *serverTables) Rebuild(ctx context.Context, o store.RebuildOptions) error {
	return store.Rebuild(ctx, t.bus, t.Database, t.log, o)
}
