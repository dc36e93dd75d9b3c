package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// migrateShard migrates the cluster unless a server of one shard has all migrations already. Then
// the writers of the shard need not wait for the servers of the others.
func (c *Cluster) migrateShard(ctx context.Context, m *schemas.ShardMap, shard int) error {
	if c.isMigrated(ctx, m, m.Shards[shard].Replicas) {
		return nil
	}
	return c.migrateMap(ctx, m)
}

// isMigrated reports whether one of the servers is available and has all migrations.
func (c *Cluster) isMigrated(ctx context.Context, m *schemas.ShardMap, servers []string) bool {
	return slices.ContainsFunc(servers, func(server string) bool {
		return c.checkServerMigrated(ctx, m, server) == nil
	})
}

// checkServerMigrated returns an error unless a server is available, has all migrations, and its
// readers' tables cover the shards of a map.
func (c *Cluster) checkServerMigrated(
	ctx context.Context, m *schemas.ShardMap, server string,
) error {
	for _, database := range []string{m.LocalDatabase(), m.Database} {
		d, err := c.entry.on([]string{server}, database, nil, nil)
		if err != nil {
			return err
		}
		err = d.checkMigrated(ctx)
		if err == nil && database == m.Database {
			err = d.checkCovers(ctx, m)
		}
		_ = d.Close() // nothing was written
		if err != nil {
			return err
		}
	}
	return nil
}

// checkCovers returns an error unless the tables of a readers' database cover a map's shards.
func (d *Database) checkCovers(ctx context.Context, m *schemas.ShardMap) error {
	covered, err := d.readsShards(ctx, m)
	if err == nil && !covered {
		err = fmt.Errorf("the tables at %s cover other shards than version %d", d.address, m.Version)
	}
	return errors.Join(err, d.checkReaders(ctx))
}

// migrateMap waits for a server of each shard of a map, migrates the available servers, and makes
// their readers' tables cover these shards.
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
	err = c.entry.retry(ctx, "migrate", func(ctx context.Context) error {
		isLive, err := c.liveServers(ctx, m)
		if err != nil {
			return err
		}
		isDown := func(t *migrationTarget) bool { return !isLive[t.options.Addr[0]] }
		local := slices.DeleteFunc(slices.Clone(local), isDown)
		readers := slices.DeleteFunc(slices.Clone(readers), isDown)
		return migrateTargets(ctx, m, schemas.Migrations(), local, readers)
	})
	if err != nil {
		return fmt.Errorf("migrate cluster %s: %w", m.Cluster, err)
	}
	return nil
}

// migrateTargets tries once to migrate the local and the readers' databases of servers.
func migrateTargets(
	ctx context.Context, m *schemas.ShardMap, all []schemas.Migration,
	local, readers []*migrationTarget,
) error {
	if err := copySchemas(ctx, m, local); err != nil {
		return err
	}
	// A distributed table has the columns of the local table, so that one comes first.
	if err := applyTo(ctx, all, local, readers); err != nil {
		return err
	}
	for _, t := range readers {
		if err := t.readShards(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// liveServers returns the servers of a map that accept a connection, and an error if there is none
// for a shard.
func (c *Cluster) liveServers(
	ctx context.Context, m *schemas.ShardMap,
) (isLive map[string]bool, err error) {
	isLive = make(map[string]bool)
	for i, s := range m.Shards {
		var failures []error
		for _, server := range s.Replicas {
			if err := c.ping(ctx, server); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", server, err))
				continue
			}
			isLive[server] = true
		}
		if len(failures) == len(s.Replicas) {
			return nil, fmt.Errorf("shard %d: %w", i+1, errors.Join(failures...))
		}
	}
	return isLive, nil
}

// ping connects to a server.
func (c *Cluster) ping(ctx context.Context, server string) error {
	d, err := c.entry.on([]string{server}, "default", nil, nil)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.connect(ctx)
}

// replicaInterval is the interval at which replicas that lack migrations are tried again.
const replicaInterval = 10 * time.Second

// migrateReplicas migrates the replicas that were not available when their shard was migrated. It
// returns when all replicas are migrated, or ctx ends.
func (c *Cluster) migrateReplicas(ctx context.Context) {
	tick := time.NewTicker(replicaInterval)
	defer tick.Stop()
	for !c.migrateAvailable(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// migrateAvailable migrates the available replicas that lack migrations, and reports whether all
// replicas are migrated. A shard with one server waits for it, and is not considered.
func (c *Cluster) migrateAvailable(ctx context.Context) (complete bool) {
	complete = true
	for _, s := range c.shardMap.Shards {
		for _, server := range s.Replicas {
			if len(s.Replicas) == 1 {
				continue
			}
			err := c.checkServerMigrated(ctx, c.shardMap, server)
			if err == nil {
				continue
			}
			if c.ping(ctx, server) == nil {
				err = c.migrateMap(ctx, c.shardMap)
			}
			if err != nil {
				complete = false
				c.log.Warn("replica is not migrated yet", "server", server, "error", err)
			}
		}
	}
	return complete
}

// migrateLocal migrates the databases of the shards only.
func (c *Cluster) migrateLocal(ctx context.Context, m *schemas.ShardMap) error {
	local, err := c.targets(m, m.LocalDatabase(), shardTables(m))
	if err != nil {
		return err
	}
	return c.entry.retry(ctx, "migrate", func(ctx context.Context) error {
		return applyTo(ctx, schemas.Migrations(), local)
	})
}

// targets returns a database on each server of a map. Each statement runs on every server before
// the next one, as with ON CLUSTER: the second replica of a table is created before the first one
// gets further columns.
func (c *Cluster) targets(
	m *schemas.ShardMap, database string, translate func(string) ([]string, error),
) (all []*migrationTarget, err error) {
	for _, s := range m.Shards {
		for _, server := range s.Replicas {
			d, err := c.database(c.entry, []string{server}, database, nil, nil)
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
	for _, table := range createdTables() {
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
	return nil
}
