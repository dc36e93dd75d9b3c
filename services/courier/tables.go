package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/services"
	"courier/services/local"
	"courier/store"
	"courier/store/engine"

	"github.com/prometheus/client_golang/prometheus"
)

type storeVerifyCommand struct {
	tableFlags
	outputFlags
}

func (c *storeVerifyCommand) Run(w *environment) error {
	if err := c.locate(false); err != nil {
		return err
	}
	return compare(w, c.tableFlags, c.outputFlags, nil)
}

// compare calls first, compares log and tables, and prints the differences.
func compare(
	w *environment,
	at tableFlags,
	output outputFlags,
	first func(tableStore, *services.StepBar) error,
) error {
	b, err := at.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	database := at.clickHouseFlags.options(at.ClickHouseURL)
	// A query of the read-only user may take ten minutes; the driver adds five seconds.
	database.Timeout = 9 * time.Minute
	tables, err := at.open(w.ctx, b, database, w.log, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tables.Close() }() // The process ends.
	p := &services.StepBar{Out: w.stderr}
	if first != nil {
		if err := first(tables, p); err != nil {
			p.End()
			return err
		}
	}
	r, err := tables.Verify(w.ctx, store.VerifyOptions{Progress: p.Draw})
	p.End()
	if err != nil {
		return err
	}
	err = output.print(w, r, r.WriteText)
	if err == nil && !r.OK {
		return notMet{errors.New("log and tables differ")}
	}
	return err
}

// tableFlags name the log and its tables: those of services, or those of a courier all.
type tableFlags struct {
	natsFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of the ClickHouse with the tables, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	clusterFlags
	Data string `help:"Data directory of the courier all with the tables (default: courier-data, unless --clickhouse-url is given); replaces --nats-url and --clickhouse-url." type:"path" env:"COURIER_DATA"`
}

// defaultData is the data directory of courier all without --data.
const defaultData = "courier-data"

// locate finds the endpoints of a courier all. A writer uses the credentials of its store.
func (f *tableFlags) locate(isWriter bool) error {
	if f.Data == "" {
		if f.ClickHouseURL != "" {
			return nil
		}
		f.Data = defaultData // as courier sql does
	}
	e, err := sqlEndpoints(f.Data)
	if err != nil {
		return err
	}
	f.clickHouseFlags = clickHouseFlags{} // The URL contains them.
	f.NATSURL = e.NATSURL
	f.ClickHouseURL, err = storeURL(f.Data, e, isWriter)
	return err
}

// storeURL returns the URL of the engine of a courier all for its reader or for its store.
func storeURL(dataDir string, e local.Endpoints, isWriter bool) (string, error) {
	at := engine.Connection{
		NativeURL: e.ClickHouseNativeURL, Database: e.ClickHouseDatabase, User: e.ClickHouseUser,
		Password: e.ClickHousePassword,
	}
	if isWriter {
		var err error
		at.User, at.Password, err = engine.Writer(filepath.Join(dataDir, "clickhouse"))
		if err != nil {
			return "", err
		}
	}
	return at.StoreURL(), nil
}

type storeRebuildCommand struct {
	tableFlags
	outputFlags
	Streams       []string `arg:"" optional:"" name:"stream" enum:"JOB,NODE,REGRESSOR,ADVICE" help:"Streams whose tables are rebuilt: JOB, NODE, REGRESSOR or ADVICE (default: all)."`
	BatchMessages int      `help:"Maximum number of events in a batch." default:"${batch_messages}" env:"COURIER_BATCH_MESSAGES"`
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
		if c.Output == "table" {
			fmt.Fprintf(w.stdout, "Rebuilt from the log in %s.\n",
				schemas.FormatSeconds(time.Since(begin).Seconds()))
		}
		return nil
	}
	return compare(w, c.tableFlags, c.outputFlags, rebuild)
}

type clusterFlags struct {
	Cluster string `name:"clickhouse-cluster" help:"Name of a ClickHouse cluster with shards, in the remote_servers of the server of --clickhouse-url (default: one server)." env:"COURIER_CLICKHOUSE_CLUSTER"`
}

// tableStore writes and compares the tables of a server or a cluster.
type tableStore interface {
	Migrate(ctx context.Context) error
	Run(ctx context.Context) error
	Verify(ctx context.Context, o store.VerifyOptions) (*store.Report, error)
	Rebuild(ctx context.Context, o store.RebuildOptions) error
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

type serverTables struct {
	*store.Database
	bus     *bus.Bus
	options store.Options
	log     *slog.Logger
	reg     prometheus.Registerer
}

func (t *serverTables) Run(ctx context.Context) error {
	return store.New(t.bus, t.Database, t.log, t.reg, t.options).Run(ctx)
}

func (t *serverTables) Verify(ctx context.Context, o store.VerifyOptions) (*store.Report, error) {
	return store.Verify(ctx, t.bus, t.Database, o)
}

func (t *serverTables) Rebuild(ctx context.Context, o store.RebuildOptions) error {
	return store.Rebuild(ctx, t.bus, t.Database, t.log, o)
}
