package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// deleteDuplicates deletes rows so that the first row of each event remains. The rows of an event
// are equal, so a statement addresses each row by its position on disk. If a merge moves rows in
// the meantime, the statement deletes nothing, and the next attempt reads the positions again.
// Every event has a row at any time.
func (c *eventComparison) deleteDuplicates(ctx context.Context) error {
	const maxRows, maxIdle = 10_000, 5 // rows per statement; attempts without effect
	for left, idle := uint64(0), 0; idle < maxIdle; idle++ {
		var duplicates []struct {
			All uint64 `ch:"all_rows"`
			rowPosition
		}
		err := c.database.Query(ctx, &duplicates, fmt.Sprintf(
			"SELECT part, place, first_block, last_block, count() OVER () AS all_rows FROM ("+
				"SELECT %s, row_number() OVER (PARTITION BY %s, halfMD5(event_id) "+
				"ORDER BY sequence, _part, _part_offset) AS number "+
				"FROM %s WHERE %s AND sequence <= %d) "+
				"WHERE number > 1 ORDER BY part, place LIMIT %d",
			positionSQL, hourSQL, c.table.name, c.where, c.log.position, maxRows))
		if err != nil || len(duplicates) == 0 {
			return err
		}
		if duplicates[0].All != left {
			left, idle = duplicates[0].All, 0
		}

		positions := make([]rowPosition, len(duplicates))
		for i := range duplicates {
			positions[i] = duplicates[i].rowPosition
		}
		if err := c.database.deleteRows(ctx, c.table.name, positions); err != nil {
			return err
		}
	}
	return nil // the second comparison reports the rest
}

// rowPosition is the position of a row on disk: an immutable part, and the row's offset in it. A
// part holds the blocks from First to Last; a merge replaces parts by one part with their
// blocks.
type rowPosition struct {
	Part  string `ch:"part"`
	Row   uint64 `ch:"place"`
	First uint64 `ch:"first_block"`
	Last  uint64 `ch:"last_block"`
}

// positionSQL selects a rowPosition.
const positionSQL = "_part AS part, _part_offset AS place, " +
	"toUInt64(splitByChar('_', _part)[2]) AS first_block, " +
	"toUInt64(splitByChar('_', _part)[3]) AS last_block"

// deleteRows deletes the rows at these positions, except rows that a merge has moved.
func (d *Database) deleteRows(ctx context.Context, table string, rows []rowPosition) error {
	if len(rows) == 0 {
		return nil
	}
	offsets := make(map[string][]string) // by part
	for _, r := range rows {
		offsets[r.Part] = append(offsets[r.Part], fmt.Sprint(r.Row))
	}
	var conditions []string
	for _, part := range slices.Sorted(maps.Keys(offsets)) {
		conditions = append(conditions, fmt.Sprintf("(_part = '%s' AND _part_offset IN (%s))",
			part, strings.Join(offsets[part], ",")))
	}
	statement := "DELETE FROM " + table + " WHERE " + strings.Join(conditions, " OR ")
	return d.exec(ctx, "repair "+table, statement)
}
