package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// RebuildOptions configures a rebuild.
type RebuildOptions struct {
	Streams     []string // whose tables are rebuilt; default: all
	MaxMessages int      // of a batch; default schemas.MaxBatchMessages

	// Progress, if set, is called at intervals from one goroutine.
	Progress func(action string, done, total uint64)
}

// Rebuild restores the tables and roll-ups of streams from the log, also in an empty database. The
// writer of each stream deletes the rows of events that the log still has, and then writes the log
// again. The writer is the running store, or one that Rebuild starts. Rows of events that the log
// has dropped stay, with their part in the roll-ups.
//
//	intent ─► start of the log     rows from there on: deleted     log: written
//
// After a crash at any point, a store continues. The error matches ErrOtherLog if the tables hold
// later sequences than the log ever assigned, and otherwise the errors of Migrate.
func Rebuild(ctx context.Context, b *bus.Bus, d *Database, log *slog.Logger, o RebuildOptions) error {
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	if err := checkNoShards(ctx, b, d); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := d.Migrate(ctx); err != nil {
		return err
	}
	last, err := rewind(ctx, b, d, o.Streams)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	s := New(b, d, log, nil, Options{MaxMessages: o.MaxMessages})
	return s.writeUntil(ctx, last, o.Progress)
}

// writeUntil runs a store until the tables hold streams up to their last sequences. If another store
// writes them, it only waits.
func (s *Store) writeUntil(
	ctx context.Context, last map[string]uint64, progress func(string, uint64, uint64),
) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// A dead letter at the end of a stream has no position, so progress follows the backlog.
		done, total := uint64(0), uint64(0)
		for _, d := range s.database.shard.durables() {
			b, err := s.bus.Backlog(ctx, d)
			if err != nil && ctx.Err() == nil {
				s.log.Debug("backlog cannot be read", "stream", d.Stream, "error", err)
			}
			done += min(b.Done, last[d.Stream])
			total += last[d.Stream]
		}
		progress("replay", done, total)
		if done == total {
			stop()
			return <-ended
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return errors.Join(err, ctx.Err())
		}
	}
}

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
	d, end, err := w.database.settled(ctx, nil)
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
