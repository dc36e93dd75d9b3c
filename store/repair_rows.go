package store

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// restore adds rows to a table without its roll-ups seeing them.
//
// ClickHouse writes a block's token down before it makes the block visible. If
// it is killed between the two, it refuses the repeated block as a copy for
// ever, while the roll-ups take it, under tokens of their own. So a repeated
// batch is looked up once more after its insert, and what is still missing comes
// in as parts of a table that no roll-up reads. It may be repeated at any point.
// That table's name ends in suffix, one for each who may be at work at once.
func (d *Database) restore(ctx context.Context, t *table, items []item, suffix string) error {
	rows := rowsOf(items)
	return d.attach(ctx, t.name, suffix, func(side string) error {
		insert, end := d.begin(ctx, "restore "+t.name, clickhouse.Settings{"max_partitions_per_insert_block": 0})
		into := *t
		into.insert = insertInto(side, t.row)
		return end.with(d.send(insert, &into, rows))
	})
}

// attach adds to a table what fill writes to another of the same kind.
func (d *Database) attach(ctx context.Context, table, suffix string, fill func(side string) error) error {
	side := table + "_" + suffix
	for _, statement := range []string{"DROP TABLE IF EXISTS " + side + " SYNC", "CREATE TABLE " + side + " AS " + table} {
		if err := d.exec(ctx, "restore "+table, statement); err != nil {
			return err
		}
	}
	if err := fill(side); err != nil {
		return err
	}
	var partitions []struct {
		ID string `ch:"partition_id"`
	}
	err := d.Query(ctx, &partitions, "SELECT DISTINCT partition_id FROM system.parts WHERE database = currentDatabase() AND table = ? AND active", side)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		statement := fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION ID '%s' FROM %s", table, p.ID, side)
		if err := d.exec(ctx, "restore "+table, statement); err != nil {
			return err
		}
	}
	return d.exec(ctx, "restore "+table, "DROP TABLE "+side+" SYNC")
}
