package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"courier/bus"
	"courier/schemas"
)

// ErrTablesDiffer reports a single server's tables where a cluster's are expected, or the other way
// round.
var ErrTablesDiffer = errors.New("the tables of the database do not match the option --clickhouse-cluster")

// checkReaders returns an error if the readers' database has a table with data in place of one of
// the distributed tables or views: the tables of a single server. A store would leave them as they
// are, and readers would see their rows instead of those of the shards.
func (d *Database) checkReaders(ctx context.Context) error {
	name, engine, err := d.findTable(ctx, "engine NOT IN ('Distributed', 'View')")
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%w: %s at %s is a %s of a single server: give the cluster the name of another "+
		"database, or rename this one (docs/howto/clickhouse-cluster.md): %w",
		ErrTablesDiffer, name, d.address, engine, ErrRefused)
}

// checkSingle returns an error if a table of the database covers the shards of a cluster. A store
// of a single server would insert each event again.
func (d *Database) checkSingle(ctx context.Context) error {
	name, _, err := d.findTable(ctx, "engine = 'Distributed'")
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%w: %s at %s covers the shards of a cluster: add --clickhouse-cluster: %w",
		ErrTablesDiffer, name, d.address, ErrRefused)
}

// findTable returns the first of the store's tables that matches a condition on system.tables, or
// "" if there is none. The database may be missing.
func (d *Database) findTable(ctx context.Context, condition string) (name, engine string, err error) {
	var rows []struct {
		Name   string `ch:"name"`
		Engine string `ch:"engine"`
	}
	err = d.Query(ctx, &rows, "SELECT name, engine FROM system.tables "+
		"WHERE database = currentDatabase() AND has(?, name) AND "+condition+" ORDER BY name LIMIT 1",
		tableNames())
	if serverCode(err) == codeUnknownDatabase {
		return "", "", nil
	}
	if err != nil || len(rows) == 0 {
		return "", "", err
	}
	return rows[0].Name, rows[0].Engine, nil
}

func tableNames() (names []string) {
	statements, _ := translateAll(asIs) // it fails for no statement
	for _, s := range statements {
		if table := makeTable.FindStringSubmatch(s); table != nil {
			names = append(names, table[1])
		}
	}
	return names
}

// checkColumns returns an error if a table of a migrated database lacks a column that the store writes.
func (d *Database) checkColumns(ctx context.Context) error {
	var rows []struct {
		Table   string   `ch:"table"`
		Columns []string `ch:"columns"`
	}
	if err := d.Query(ctx, &rows, "SELECT table, groupArray(name) AS columns FROM system.columns "+
		"WHERE database = currentDatabase() GROUP BY table"); err != nil {
		return err
	}
	columns := map[string][]string{}
	for _, r := range rows {
		columns[r.Table] = r.Columns
	}
	for _, t := range schemas.Tables() {
		present, exists := columns[t.Name]
		for _, name := range columnNames(reflect.TypeOf(t.Row)) {
			if exists && !slices.Contains(present, name) {
				return fmt.Errorf("%w: table %s at %s lacks the column %s, as an unreleased version of "+
					"courier has created it: drop the database, start again, and run courier store rebuild",
					ErrRefused, t.Name, d.address, name)
			}
		}
	}
	return nil
}

// checkNoShards returns an error if d is a single server's database, but has the name of one with the
// rows or the readers' tables of a cluster to which the log is written.
func checkNoShards(ctx context.Context, b *bus.Bus, d *Database) error {
	if d.shard != nil {
		return nil
	}
	maps, _, err := b.ShardMaps(ctx)
	if err != nil {
		return err
	}
	name := d.options.Auth.Database
	for _, m := range maps {
		if name == m.Database || name == m.LocalDatabase() {
			return fmt.Errorf("%w: %s has the rows of a cluster of %d shards: "+
				"add --clickhouse-cluster=%s, or name another database: %w",
				ErrTablesDiffer, d.address, len(m.Shards), m.Cluster, ErrRefused)
		}
	}
	return nil
}
