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

// copySchemas gives each replica without tables, such as one with a new disk, the tables of another
// replica of its shard. The migrations cannot create them: the first ones lack the columns that the
// other replicas have by now, and ClickHouse refuses a replica with other columns.
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
			if err := t.copySchema(ctx, from.Database); err != nil {
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

// copySchema creates the replicated tables and the views of another replica. A crash in between leaves
// the database without migrations, so that the next call creates the rest.
func (d *Database) copySchema(ctx context.Context, from *Database) error {
	var tables []struct {
		Create string `ch:"create_table_query"`
	}
	err := from.Query(ctx, &tables, "SELECT create_table_query FROM system.tables "+
		"WHERE database = currentDatabase() AND (engine LIKE 'Replicated%' OR engine LIKE '%View') "+
		"ORDER BY engine LIKE '%View', name")
	if err != nil {
		return err
	}
	// A view may read another one, which is created first.
	for left := len(tables) + 1; len(tables) > 0; {
		if len(tables) == left {
			return err
		}
		left, err = len(tables), nil
		tables = slices.DeleteFunc(tables, func(t struct {
			Create string `ch:"create_table_query"`
		}) bool {
			failure := d.exec(ctx, "migrate", strings.Replace(t.Create, " "+d.options.Auth.Database+".",
				" IF NOT EXISTS "+d.options.Auth.Database+".", 1))
			err = errors.Join(err, failure)
			return failure == nil
		})
	}

	if err := d.joinQuorums(ctx); err != nil {
		return err
	}

	var applied []struct {
		Number  uint32    `ch:"number"`
		Name    string    `ch:"name"`
		Applied time.Time `ch:"applied_at"`
	}
	err = from.Query(ctx, &applied, "SELECT * FROM schema_migrations ORDER BY number")
	for _, m := range applied {
		if err == nil {
			err = d.exec(ctx, "migrate", "INSERT INTO schema_migrations SELECT ?, ?, ?", m.Number, m.Name,
				m.Applied)
		}
	}
	return err
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
