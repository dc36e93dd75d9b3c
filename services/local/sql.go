package local

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"

	"courier/services"
	"courier/store"
	"courier/store/engine"
)

// runSQL runs the engine and the store until ctx ends. Without an engine it prints that once and
// waits, because the other parts work without SQL.
func (i *Instance) runSQL(ctx context.Context) error {
	defer i.setNoSQL("stopped")
	if url := i.o.ClickHouse.URL; url != "" {
		return i.runStore(ctx, i.o.ClickHouse, Endpoints{ClickHouseNativeURL: url})
	}
	if i.o.Engine == "off" {
		i.setNoSQL("--engine=off")
		<-ctx.Done()
		return nil
	}
	library, err := i.engineLibrary(ctx)
	if err == nil {
		return i.runEngine(ctx, library)
	}
	if i.o.EngineLibrary != "" {
		return err
	}
	i.setNoSQL(err.Error())
	if ctx.Err() == nil {
		i.o.Printf("SQL is off: %s", err)
	}
	<-ctx.Done()
	return nil
}

// engineLibrary finds the library of the engine, or downloads it once per user.
func (i *Instance) engineLibrary(ctx context.Context) (string, error) {
	found, err := engine.FindLibrary(i.o.EngineLibrary)
	if errors.Is(err, engine.ErrNotFound) && i.o.EngineLibrary == "" {
		if _, npm := exec.LookPath("npm"); npm != nil {
			return "", err
		}
		i.o.Printf("SQL needs the ClickHouse engine: downloading 178 MB with npm, once" +
			" (--engine=off skips it)")
		found, err = engine.Install(ctx, engine.InstallOptions{})
	}
	return found, err
}

// runEngine runs the embedded engine, and the store as soon as the engine is ready.
func (i *Instance) runEngine(ctx context.Context, library string) error {
	httpPort, err := i.choosePort(ctx, "clickhouse", "--clickhouse-http-port", i.o.ClickHouseHTTPPort, 8123,
		i.last.ClickHouseHTTPURL)
	if err != nil {
		return err
	}
	tcpPort, err := i.choosePort(ctx, "clickhouse", "--clickhouse-tcp-port", i.o.ClickHouseTCPPort, 9000,
		i.last.ClickHouseNativeURL)
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{
		DataDir: filepath.Join(i.o.Data, "clickhouse"), Library: library, HTTPPort: httpPort, TCPPort: tcpPort,
	}, i.log, i.registry)
	if err != nil {
		return err
	}

	runStore := func(ctx context.Context) error {
		at, err := e.Ready(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return i.runStore(ctx, store.Options{URL: at.StoreURL()}, Endpoints{
			ClickHouseHTTPURL: at.HTTPURL, ClickHouseNativeURL: at.NativeURL, ClickHouseDatabase: at.Database,
			ClickHouseUser: at.ReaderUser, ClickHousePassword: at.ReaderPassword,
		})
	}
	return services.Run(ctx, i.log, 0,
		services.Group{{Name: "engine", Run: e.Run}},
		services.Group{{Name: "store", Run: runStore}})
}

// runStore migrates the tables and writes events to them until ctx ends.
func (i *Instance) runStore(ctx context.Context, o store.Options, sql Endpoints) error {
	d, err := store.Open(ctx, o, i.log, i.registry)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // Nothing is written any more.
	if err := d.Migrate(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	i.database.Store(d)
	err = i.changeEndpoints(func(e *Endpoints) {
		sql.NATSURL, sql.HTTPURL = e.NATSURL, e.HTTPURL
		*e = sql
	})
	if err != nil {
		return err
	}
	if sql.ClickHouseHTTPURL != "" {
		i.o.Printf("sql       courier sql --data %s 'SELECT * FROM jobs' (%s, %s)", i.o.Data,
			sql.ClickHouseHTTPURL, sql.ClickHouseNativeURL)
	}
	return store.New(i.bus, d, i.log, i.registry, o).Run(ctx)
}

// setNoSQL records why SQL is not available. It keeps an earlier reason.
func (i *Instance) setNoSQL(reason string) { i.noSQL.CompareAndSwap(nil, &reason) }

// SQLMissing returns why there is no SQL at present; empty if there is.
func (i *Instance) SQLMissing() string {
	if reason := i.noSQL.Load(); reason != nil {
		return *reason
	}
	if i.Endpoints().ClickHouseHTTPURL == "" {
		return "the engine was not ready in time"
	}
	return ""
}
