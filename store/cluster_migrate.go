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

func (c *Cluster) isMigrated(ctx context.Context, servers []string) bool {
	return slices.ContainsFunc(servers, func(server string) bool {
		return c.checkServerMigrated(ctx, server) == nil
	})
}

func (c *Cluster) checkServerMigrated(ctx context.Context, server string) error {
	for _, database := range []string{c.shardMap.LocalDatabase(), c.shardMap.Database} {
		err := c.entry.visit(server, database, func(d *Database) error {
			err := d.checkMigrated(ctx)
			if err == nil && database == c.shardMap.Database {
				err = d.checkReaders(ctx)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) migrateServers(ctx context.Context) error {
	c.migrating.Lock()
	defer c.migrating.Unlock()
	local, readers, err := c.targets()
	if err != nil {
		return err
	}
	err = c.entry.retry(ctx, "migrate", func(ctx context.Context) error {
		isLive, err := c.liveServers(ctx)
		if err != nil {
			return err
		}
		isDown := func(t *migrationTarget) bool { return !isLive[t.options.Addr[0]] }
		local := slices.DeleteFunc(slices.Clone(local), isDown)
		readers := slices.DeleteFunc(slices.Clone(readers), isDown)
		return migrateTargets(ctx, c.shardMap, schemas.Migrations(), local, readers)
	})
	if err != nil {
		return fmt.Errorf("migrate cluster %s: %w", c.name, err)
	}
	return nil
}

func migrateTargets(
	ctx context.Context, m *schemas.ShardMap, all []schemas.Migration,
	local, readers []*migrationTarget,
) error {
	if err := copySchemas(ctx, m, local); err != nil {
		return err
	}
	// A distributed table has the columns of the local table, so that one comes first.
	return applyTo(ctx, all, local, readers)
}

// liveServers returns the servers that accept a connection, and an error if there is none for a
// shard.
func (c *Cluster) liveServers(ctx context.Context) (isLive map[string]bool, err error) {
	isLive = make(map[string]bool)
	for i, s := range c.shardMap.Shards {
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

func (c *Cluster) ping(ctx context.Context, server string) error {
	return c.entry.visit(server, "default", func(d *Database) error { return d.connect(ctx) })
}

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
			err := c.checkServerMigrated(ctx, server)
			if err == nil {
				continue
			}
			if c.ping(ctx, server) == nil {
				err = c.migrateServers(ctx)
			}
			if err != nil {
				complete = false
				c.log.Warn("replica is not migrated yet", "server", server, "error", err)
			}
		}
	}
	return complete
}

// targets returns the local and the readers' database on each server. Each statement runs on every
// server before the next one, as with ON CLUSTER: the second replica of a table is created before the
// first one gets further columns.
func (c *Cluster) targets() (local, readers []*migrationTarget, err error) {
	for _, s := range c.shardMap.Shards {
		for _, server := range s.Replicas {
			d, err := c.database(c.entry, []string{server}, c.shardMap.LocalDatabase(), nil, nil)
			if err != nil {
				return nil, nil, err
			}
			local = append(local, &migrationTarget{Database: d, translate: shardTables(c.shardMap), next: -1})
			d, err = c.database(c.entry, []string{server}, c.shardMap.Database, nil, nil)
			if err != nil {
				return nil, nil, err
			}
			readers = append(readers, &migrationTarget{
				Database: d, translate: readerTables(c.shardMap), check: d.checkReaders, next: -1,
			})
		}
	}
	return local, readers, nil
}

// copySchemas gives each replica without tables, such as one with a new disk, the tables of another
// replica of its shard. The migrations cannot create them: the first ones lack the columns that the
// other replicas have by now, and ClickHouse refuses a replica with other columns. Afterwards the
// migrations create the views, and change nothing else.
func copySchemas(ctx context.Context, m *schemas.ShardMap, local []*migrationTarget) error {
	for _, s := range m.Shards {
		var from *migrationTarget
		var empty []*migrationTarget
		for _, t := range local {
			if len(s.Replicas) == 1 || !slices.Contains(s.Replicas, t.options.Addr[0]) {
				continue
			}
			applied, err := t.appliedToTables(ctx)
			switch {
			case err != nil:
				return err
			case applied > 0:
				from = t
			default:
				empty = append(empty, t)
			}
		}
		for _, t := range empty {
			if from == nil {
				break
			}
			if err := t.copyTables(ctx, from.Database); err != nil {
				return fmt.Errorf("copy the tables of %s: %w", from.address, err)
			}
			t.log.Info("tables of another replica created", "address", t.address, "other", from.address)
		}
	}
	return nil
}

// appliedToTables returns the number of migrations of the database; 0 if it has no tables.
func (t *migrationTarget) appliedToTables(ctx context.Context) (int, error) {
	if err := t.connect(ctx); err != nil {
		return 0, err
	}
	if err := t.exec(ctx, "migrate", migrationTable); err != nil {
		return 0, err
	}
	return t.appliedMigration(ctx)
}

func (d *Database) copyTables(ctx context.Context, from *Database) error {
	tables, err := values[string](ctx, from, "SELECT create_table_query FROM system.tables "+
		"WHERE database = currentDatabase() AND engine LIKE 'Replicated%'")
	if err != nil {
		return err
	}
	name := " " + d.options.Auth.Database + "."
	for _, create := range tables {
		err := d.exec(ctx, "migrate", strings.Replace(create, name, " IF NOT EXISTS"+name, 1))
		if err != nil {
			return err
		}
	}
	return d.joinQuorums(ctx)
}

// joinQuorums confirms the parts that were inserted while the replica was created. It fetches them, but
// only a restart looks for their quorums, without which no other part can be inserted.
func (d *Database) joinQuorums(ctx context.Context) error {
	if err := d.fetchParts(ctx); err != nil {
		return err
	}
	tables, err := d.replicatedTables(ctx)
	for _, name := range tables {
		if err == nil {
			err = d.exec(ctx, "migrate", "SYSTEM RESTART REPLICA "+name)
		}
	}
	return err
}
