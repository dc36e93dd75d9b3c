package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// rewind makes the writers of streams (none: all) start again at the start of the log. It returns
// the last sequence of each stream. With a different log, rows that only the tables have would be
// lost, so it checks all streams first.
func rewind(
	ctx context.Context, b *bus.Bus, d *Database, streams []string,
) (last map[string]uint64, err error) {
	durables := slices.DeleteFunc(d.shard.durables(), func(d schemas.Durable) bool {
		return len(streams) > 0 && !slices.Contains(streams, d.Stream)
	})
	for _, durable := range durables {
		if _, err := recordedPosition(ctx, b, d, durable.Stream); err != nil {
			return nil, fmt.Errorf("%s: %w", durable.Stream, err)
		}
	}
	last = make(map[string]uint64)
	for _, durable := range durables {
		if last[durable.Stream], err = b.Rewind(ctx, durable); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// clearTimeout bounds a statement that deletes the rows of a table, or computes a roll-up again.
const clearTimeout = time.Hour

// clear deletes the rows of the events that the log still has, from the sequence first on, before
// the writer of the stream writes them again. It may be repeated after a crash at any point.
func (w *batchWriter) clear(ctx context.Context, stream string, first uint64) error {
	if err := w.database.stopWriter(ctx); err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	d, end, err := w.database.settled(ctx)
	if err != nil {
		return err
	}
	defer end()

	ctx = context.WithValue(ctx, timeoutKey{}, clearTimeout)
	const positions = "DELETE FROM log_position WHERE stream = '%s'"
	if err := d.exec(ctx, "clear "+positionTable, fmt.Sprintf(positions, stream)); err != nil {
		return err
	}
	for _, t := range w.tables {
		if t.stream != stream {
			continue
		}
		if err := d.clearTable(ctx, t.name, first); err != nil {
			w.reloadUnreadable(ctx, err)
			return err
		}
	}
	if first > 1 {
		return w.database.recordPosition(ctx, stream, first-1)
	}
	return nil
}

func (d *Database) clearTable(ctx context.Context, table string, first uint64) error {
	if first > 1 {
		rows := fmt.Sprintf("%s WHERE sequence >= %d", table, first)
		if err := d.deleteAndWait(ctx, "clear "+table, rows); err != nil {
			return err
		}
		return d.recomputeRollUps(ctx, table)
	}
	if err := d.exec(ctx, "clear "+table, "TRUNCATE TABLE "+table); err != nil {
		return err
	}
	for _, u := range rollUps[table] { // the log has all events
		if err := d.exec(ctx, "clear "+u.name, "TRUNCATE TABLE "+u.name); err != nil {
			return err
		}
	}
	return nil
}
