package store

import (
	"context"
	"fmt"
	"strings"

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
	create, err := d.sideTable(ctx, table, side)
	if err != nil {
		return err
	}
	for _, statement := range []string{"DROP TABLE IF EXISTS " + side + " SYNC", create} {
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
	err = d.Query(ctx, &partitions, "SELECT DISTINCT partition_id FROM system.parts "+
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

// sideTable returns the statement that creates a side table. That of a replicated table is not
// replicated: it would need a path of its own in the Keeper. Its parts have UUIDs, because a
// replicated table silently skips a part with the same content as one that it attached before, even
// if those rows were deleted since.
func (d *Database) sideTable(ctx context.Context, table, side string) (string, error) {
	var rows []struct {
		Engine    string `ch:"engine"`
		Partition string `ch:"partition_key"`
		Order     string `ch:"sorting_key"`
	}
	err := d.Query(ctx, &rows, "SELECT engine, partition_key, sorting_key FROM system.tables "+
		"WHERE database = currentDatabase() AND name = ?", table)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", fmt.Errorf("restore %s: the database has no such table", table)
	}
	statement := "CREATE TABLE " + side + " AS " + table
	if !strings.HasPrefix(rows[0].Engine, "Replicated") {
		return statement, nil
	}
	statement += " ENGINE = MergeTree"
	if rows[0].Partition != "" {
		statement += " PARTITION BY " + rows[0].Partition
	}
	return statement + " ORDER BY (" + rows[0].Order + ") SETTINGS assign_part_uuids = 1", nil
}
