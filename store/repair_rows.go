package store

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// restore adds rows to a table without its roll-ups.
//
// ClickHouse stores the token of a block before the block becomes visible. If it crashes in
// between, it skips every repetition of the block as a duplicate, while the roll-ups accept it
// under their own tokens. Therefore the store looks up a repeated batch again after its insert,
// and restores missing rows by attaching the parts of a side table, which has no roll-ups.
//
// A restore may be repeated at any point. The suffix of the side table distinguishes concurrent
// callers.
func (d *Database) restore(
	ctx context.Context, t *eventTable, rows []eventRow, suffix string,
) error {
	values := rowValues(rows)
	return d.attachSideTable(ctx, t.name, suffix, func(side string) error {
		settings := clickhouse.Settings{"max_partitions_per_insert_block": 0}
		insertCtx, running := d.begin(ctx, "restore "+t.name, settings)
		sideTable := *t
		sideTable.insert = insertInto(side, t.row)
		return running.end(d.insert(insertCtx, &sideTable, values))
	})
}

// attachSideTable creates a side table with the definition of a table, fills it, and moves its
// parts into the table.
func (d *Database) attachSideTable(
	ctx context.Context, table, suffix string, fill func(side string) error,
) error {
	side, kind := table+"_"+suffix, "restore "+table
	for _, statement := range []string{
		"DROP TABLE IF EXISTS " + side + " SYNC",
		"CREATE TABLE " + side + " AS " + table,
	} {
		if err := d.exec(ctx, kind, statement); err != nil {
			return err
		}
	}
	if err := fill(side); err != nil {
		return err
	}

	var partitions []struct {
		ID string `ch:"partition_id"`
	}
	err := d.Query(ctx, &partitions, "SELECT DISTINCT partition_id FROM system.parts "+
		"WHERE database = currentDatabase() AND table = ? AND active", side)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		statement := fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION ID '%s' FROM %s",
			table, p.ID, side)
		if err := d.exec(ctx, kind, statement); err != nil {
			return err
		}
	}
	return d.exec(ctx, kind, "DROP TABLE "+side+" SYNC")
}
