package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// repairRows recomputes rows of a part. It returns the rows that differ nevertheless, and the
// busy rows of the part.
func (c *rollUpCheck) repairRows(
	ctx context.Context, p rollUpPart, rows []differingRow,
) (left, busy []differingRow, err error) {
	const maxTurns = 3
	left = rows
	for turn := 0; turn < maxTurns && len(left) > 0; turn++ {
		for chunk := range slices.Chunk(left, maxStatementKeys) {
			keys := make(map[string]bool, len(chunk))
			for _, r := range chunk {
				keys[r.Key] = true
			}
			err := c.retryBusy(ctx, func() (bool, error) {
				err := c.recompute(ctx, p, keys)
				return len(keys) == 0, err
			})
			if err != nil {
				return nil, nil, err
			}
		}
		if left, busy, err = c.differingRows(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	return left, busy, nil
}

// recompute recomputes the rows of the keys to which no store is writing, and removes these keys
// from the map.
//
// Stores may insert rows for the same keys in the meantime. Therefore recompute deletes rows by
// their position on disk, and inserts only what the table holds up to the position of its
// stream. After a crash in between, the next repair finds rows missing.
func (c *rollUpCheck) recompute(ctx context.Context, p rollUpPart, keys map[string]bool) error {
	position, err := c.position(ctx)
	if err != nil {
		return err
	}
	positions, lastBlock, err := c.rowPositions(ctx, p, keys)
	if err != nil {
		return err
	}
	inFlight, err := c.keysInFlight(ctx, p, position)
	if err != nil {
		return err
	}
	idle, doomed := make(map[string]bool), []rowPosition(nil)
	for k := range keys {
		if !inFlight[k] {
			idle[k] = true
			doomed = append(doomed, positions[k]...)
		}
	}
	if len(idle) == 0 {
		return nil
	}

	if err := c.database.deleteRows(ctx, c.name, doomed); err != nil {
		return err
	}
	if len(doomed) > 0 { // a merge may have moved rows before the deletion: skip their keys
		after, _, err := c.rowPositions(ctx, p, idle)
		if err != nil {
			return err
		}
		isOld := func(r rowPosition) bool { return r.First <= lastBlock }
		for k, rows := range after {
			if slices.ContainsFunc(rows, isOld) {
				delete(idle, k)
			}
		}
	}
	if len(idle) == 0 {
		return nil
	}

	// Rows are added by a side table, because another roll-up may read this one.
	err = c.database.attachSideTable(ctx, c.name, "repaired", func(side string) error {
		condition := fmt.Sprintf("%s AND sequence <= %d", p.sourceCondition, position)
		return c.database.exec(ctx, "rebuild "+c.name, fmt.Sprintf(
			"INSERT INTO %s SELECT * FROM (%s) WHERE %s%s",
			side, c.query, c.keyCondition(p, idle), c.filterSource(condition)))
	})
	if err == nil {
		for k := range idle {
			delete(keys, k)
		}
	}
	return err
}

// keyCondition is the condition that a row has one of the keys.
func (c *rollUpCheck) keyCondition(p rollUpPart, keys map[string]bool) string {
	list := strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
	return fmt.Sprintf("%s AND %s IN (%s)", p.condition, c.key, list)
}

// rowPositions returns the positions of the roll-up's rows by key, and the last block among
// them.
func (c *rollUpCheck) rowPositions(
	ctx context.Context, p rollUpPart, keys map[string]bool,
) (all map[string][]rowPosition, lastBlock uint64, err error) {
	var rows []struct {
		Key string `ch:"name"`
		rowPosition
	}
	err = c.database.Query(ctx, &rows, fmt.Sprintf(
		"SELECT toString(%s) AS name, %s FROM %s WHERE %s",
		c.key, positionSQL, c.name, c.keyCondition(p, keys)))
	all = make(map[string][]rowPosition)
	for _, r := range rows {
		all[r.Key] = append(all[r.Key], r.rowPosition)
		lastBlock = max(lastBlock, r.Last)
	}
	return all, lastBlock, err
}
