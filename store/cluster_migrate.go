package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"courier/schemas"
)

// migrateShard migrates the cluster unless the servers of one shard have all migrations already.
// Then the writers of the shard need not wait for the servers of the others.
func (c *Cluster) migrateShard(ctx context.Context, m *schemas.ShardMap, shard int) error {
	if c.isMigrated(ctx, m, m.Shards[shard].Replicas) {
		return nil
	}
	return c.migrateMap(ctx, m)
}

// isMigrated reports whether servers of a map's shards are available and have all migrations.
func (c *Cluster) isMigrated(ctx context.Context, m *schemas.ShardMap, servers []string) bool {
	for _, server := range servers {
		for _, database := range []string{m.LocalDatabase(), m.Database} {
			d, err := c.entry.on([]string{server}, database, nil)
			if err != nil {
				return false
			}
			err = d.checkMigrated(ctx)
			covered := true
			if err == nil && database == m.Database {
				covered, err = d.readsShards(ctx, m)
				err = errors.Join(err, d.checkReaders(ctx))
			}
			_ = d.Close()
			if err != nil || !covered {
				return false
			}
		}
	}
	return true
}

// migrateMap waits for all servers of a map's shards, migrates them, and makes the readers' tables
// cover these shards.
func (c *Cluster) migrateMap(ctx context.Context, m *schemas.ShardMap) error {
	c.migrating.Lock()
	defer c.migrating.Unlock()
	local, err := c.targets(m, m.LocalDatabase(), shardTables(m))
	if err != nil {
		return err
	}
	readers, err := c.targets(m, m.Database, readerTables(m))
	if err != nil {
		return err
	}
	for _, t := range readers {
		t.check = t.checkReaders
	}
	// A distributed table has the columns of the local table, so that one comes first.
	if err := migrate(ctx, append(local, readers...)); err != nil {
		return fmt.Errorf("cluster %s: %w", m.Cluster, err)
	}
	for _, t := range readers {
		err := t.retry(ctx, "switch the readers", func(ctx context.Context) error {
			return t.readShards(ctx, m)
		})
		if err != nil {
			return fmt.Errorf("cluster %s: %w", m.Cluster, err)
		}
	}
	return nil
}

// migrateLocal migrates the databases of the shards only.
func (c *Cluster) migrateLocal(ctx context.Context, m *schemas.ShardMap) error {
	local, err := c.targets(m, m.LocalDatabase(), shardTables(m))
	if err != nil {
		return err
	}
	return migrate(ctx, local)
}

// targets returns a database on each server of a map. Each statement of a migration runs on every
// server before the next one, as with ON CLUSTER: the second replica of a table is created before
// the first one gets further columns.
func (c *Cluster) targets(
	m *schemas.ShardMap, database string, translate func(string) ([]string, error),
) (all []*migrationTarget, err error) {
	for _, s := range m.Shards {
		for _, server := range s.Replicas {
			d, err := c.database(c.entry, []string{server}, database, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, &migrationTarget{Database: d, translate: translate, next: -1})
		}
	}
	return all, nil
}

// readsShards reports whether the distributed tables of a readers' database cover a map's shards.
func (d *Database) readsShards(ctx context.Context, m *schemas.ShardMap) (bool, error) {
	var rows []struct {
		Engine string `ch:"engine_full"`
	}
	err := d.Query(ctx, &rows, "SELECT engine_full FROM system.tables "+
		"WHERE database = currentDatabase() AND engine = 'Distributed'")
	if err != nil || len(rows) == 0 {
		return false, err
	}
	own := fmt.Sprintf("'%s'", m.LocalDatabase())
	for _, r := range rows {
		if !strings.Contains(r.Engine, own) {
			return false, nil
		}
	}
	return true, nil
}

// readShards makes the distributed tables of a readers' database cover a map's shards.
func (d *Database) readShards(ctx context.Context, m *schemas.ShardMap) error {
	if covered, err := d.readsShards(ctx, m); covered || err != nil {
		return err
	}
	all, err := schemas.Migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	for _, migration := range all {
		for _, s := range migration.Statements {
			table := makeTable.FindStringSubmatch(s)
			if table == nil {
				continue
			}
			statements, err := distribute(m, table[1], table[5])
			if err != nil {
				return err
			}
			for _, s := range statements {
				if err := d.exec(ctx, "migrate", s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
