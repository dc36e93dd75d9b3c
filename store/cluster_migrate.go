package store

import (
	"context"
	"fmt"

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
			_ = d.Close()
			if err != nil {
				return false
			}
		}
	}
	return true
}

// migrateMap waits for all servers of a map's shards and migrates them. Each statement runs on
// every server before the next one, as with ON CLUSTER: the second replica of a table is created
// before the first one gets further columns.
func (c *Cluster) migrateMap(ctx context.Context, m *schemas.ShardMap) error {
	c.migrating.Lock()
	defer c.migrating.Unlock()
	var local, readers []*migrationTarget
	for _, s := range m.Shards {
		for _, server := range s.Replicas {
			d, err := c.entry.on([]string{server}, m.LocalDatabase(), nil)
			if err != nil {
				return err
			}
			defer d.Close()
			local = append(local, &migrationTarget{
				Database: d, translate: shardTables(m), next: -1})

			if d, err = c.entry.on([]string{server}, m.Database, nil); err != nil {
				return err
			}
			defer d.Close()
			readers = append(readers, &migrationTarget{
				Database: d, translate: readerTables(m), next: -1})
		}
	}
	// A distributed table has the columns of the local table, so that one comes first.
	if err := migrate(ctx, append(local, readers...)); err != nil {
		return fmt.Errorf("cluster %s: %w", m.Cluster, err)
	}
	return nil
}
