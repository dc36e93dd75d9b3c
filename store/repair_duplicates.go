package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// single takes rows out of the table so that each event has one, the first. The
// rows of an event are alike, so each is named by its place on the disk. Where a
// merge has moved it meanwhile, nothing is deleted, and the next turn looks again.
// So no event is without a row at any time.
func (l *lookout) single(ctx context.Context) error {
	const most, idle = 10_000, 5 // rows in one statement; turns without effect
	for left, turns := uint64(0), 0; turns < idle; turns++ {
		var surplus []struct {
			All uint64 `ch:"all_rows"`
			rowPlace
		}
		err := l.database.Query(ctx, &surplus, fmt.Sprintf("SELECT part, place, first_block, last_block, count() OVER () AS all_rows FROM (SELECT %s, "+
			"row_number() OVER (PARTITION BY %s, halfMD5(event_id) ORDER BY sequence, _part, _part_offset) AS number FROM %s WHERE %s AND sequence <= %d) WHERE number > 1 ORDER BY part, place LIMIT %d",
			placeSQL, hourSQL, l.table.name, l.where, l.tally.position, most))
		if err != nil || len(surplus) == 0 {
			return err
		}
		if surplus[0].All != left {
			left, turns = surplus[0].All, 0
		}
		rows := make([]rowPlace, len(surplus))
		for i := range surplus {
			rows[i] = surplus[i].rowPlace
		}
		if err := l.database.remove(ctx, l.table.name, rows); err != nil {
			return err
		}
	}
	return nil // what is left is found by the second look
}

// rowPlace is where a row lies on the disk: a part, which never changes, and the
// row's number in it. A part holds what the inserts from a first to a last block
// brought; a merge puts one of more blocks in the place of several.
type rowPlace struct {
	Part  string `ch:"part"`
	Row   uint64 `ch:"place"`
	First uint64 `ch:"first_block"`
	Last  uint64 `ch:"last_block"`
}

// placeSQL selects a rowPlace.
const placeSQL = "_part AS part, _part_offset AS place, toUInt64(splitByChar('_', _part)[2]) AS first_block, toUInt64(splitByChar('_', _part)[3]) AS last_block"

// remove deletes rows by their places, those that no merge has moved.
func (d *Database) remove(ctx context.Context, table string, rows []rowPlace) error {
	if len(rows) == 0 {
		return nil
	}
	numbers := make(map[string][]string)
	for _, r := range rows {
		numbers[r.Part] = append(numbers[r.Part], fmt.Sprint(r.Row))
	}
	var parts []string
	for _, part := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf("(_part = '%s' AND _part_offset IN (%s))", part, strings.Join(numbers[part], ",")))
	}
	return d.exec(ctx, "repair "+table, "DELETE FROM "+table+" WHERE "+strings.Join(parts, " OR "))
}
