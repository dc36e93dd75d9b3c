package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"courier/bus"
)

type batchWriter struct {
	database *Database
	tables   []*eventTable
	log      *slog.Logger
	metrics  *storeMetrics
	samples  knownSamples  // owned by the writer of NODE
	reloaded chan struct{} // of capacity 1; full when a table was reloaded
}

// writeBatch writes one batch. After a failure at any point it may be called again with the
// same batch. While the database is unavailable it waits, at most ten seconds beyond the end of
// the outage. Other errors go to the bus, which calls it again with a growing delay.
func (w *batchWriter) writeBatch(ctx context.Context, b bus.Batch) error {
	if len(b.Records) == 0 && w.database.shard == nil {
		return nil // readers need the position of a shard, also if the batch has no event for it
	}
	for ; ; b.Redelivered = true {
		err := w.writeOnce(ctx, b)
		if err != nil {
			w.metrics.errors.WithLabelValues(b.Stream).Inc()
		}
		if w.reloadUnreadable(ctx, err) {
			return err
		}
		if err == nil || w.database.connect(ctx) == nil {
			return err
		}
		w.log.Warn("batch waits for clickhouse",
			"stream", b.Stream, "first", b.First, "last", b.Last, "error", err)
		if w.database.retry(ctx, "write a batch", w.database.connect) != nil {
			return err
		}
	}
}

// reloadUnreadable reloads a table with an unreadable part, according to an error, and requests its
// verification. It reports whether there is one.
func (w *batchWriter) reloadUnreadable(ctx context.Context, err error) bool {
	table := unreadableTable(err)
	if table == "" {
		return false
	}
	if err := w.database.reload(ctx, table); err != nil {
		w.log.Error("table with an unreadable part cannot be reloaded: "+
			"restart clickhouse, then run courier store verify", "table", table, "error", err)
		return true
	}
	select {
	case w.reloaded <- struct{}{}:
	default: // already requested
	}
	return true
}

func (w *batchWriter) writeOnce(ctx context.Context, b bus.Batch) error {
	groups, duplicates := groupByTable(w.tables, b.Records)
	for _, g := range groups {
		if err := w.writeGroup(ctx, b, g, duplicates[g.table.name]); err != nil {
			return err
		}
	}
	return w.database.recordPosition(ctx, b.Stream, b.Last)
}

// writeGroup writes the rows of one table. duplicates counts those that the group has left out.
func (w *batchWriter) writeGroup(ctx context.Context, b bus.Batch, g *tableRows, duplicates int) error {
	stored, err := w.storedRows(ctx, b, g)
	if err != nil {
		return err
	}
	rows := g.withoutDuplicates(stored)
	duplicates += len(g.rows) - len(rows)
	if b.Redelivered {
		// ClickHouse may have forgotten the token: a table from a backup has none.
		rows = rowValues(g.missing(stored))
	}

	if len(rows) > 0 {
		if err := w.database.insert(ctx, g.table, rows, dedupToken(b, g.table)); err != nil {
			return err
		}
	}
	if b.Redelivered {
		if err := w.completeGroup(ctx, b, g); err != nil {
			return err
		}
	}

	if duplicates > 0 {
		w.log.Debug("duplicates dropped", "table", g.table.name, "events", duplicates)
	}
	w.metrics.rows.WithLabelValues(g.table.name).Add(float64(len(rows)))
	w.metrics.duplicates.WithLabelValues(g.table.name).Add(float64(duplicates))
	return nil
}

// storedRows returns the rows of the table that have an event of the batch. For samples of a
// new batch it asks the table only about events that may be there.
func (w *batchWriter) storedRows(ctx context.Context, b bus.Batch, g *tableRows) ([]storedRow, error) {
	if g.table.name == "node_sample" {
		if err := w.samples.startBatch(ctx, w.database, &b); err != nil {
			return nil, err
		}
		if maybeStored := w.samples.maybeStored(g); !b.Redelivered {
			g = maybeStored
		}
	}
	if len(g.rows) == 0 {
		return nil, nil
	}
	return w.database.findStored(ctx, g)
}

// completeGroup restores rows and roll-ups that an earlier attempt may have left incomplete.
func (w *batchWriter) completeGroup(ctx context.Context, b bus.Batch, g *tableRows) error {
	// Without the right to end statements, the roll-ups are rebuilt nevertheless.
	if err := w.database.stopWriter(ctx); err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	d, end, err := w.database.settled(ctx, func(d *Database) error { return d.refuseDoubleRows(ctx, g) })
	if err != nil {
		return err
	}
	defer end()
	if err := w.restoreMissing(ctx, d, g); err != nil {
		return err
	}
	return d.rebuildRollUps(ctx, g.table.name, b.First, b.Last)
}

// refuseDoubleRows fails if the table has rows of the group twice: a roll-up would count both. A replica
// that lost its Keeper during an insert keeps the block, although it is repeated, until it has checked
// with the Keeper that the block was given up: after five minutes (ClickHouse 26.7). Neither a deletion
// nor DROP PART affects such a block.
func (d *Database) refuseDoubleRows(ctx context.Context, g *tableRows) error {
	stored, err := d.findStored(ctx, g)
	if err != nil {
		return err
	}
	seen := make(map[storedRow]bool, len(stored))
	for _, s := range stored {
		if seen[s] {
			return fmt.Errorf("%s at %s has the event %s twice: ClickHouse drops the first row within five minutes",
				g.table.name, d.address, s.EventID)
		}
		seen[s] = true
	}
	return nil
}

// restoreMissing writes the rows that the table still lacks after an insert. They count in the
// roll-ups once more, which are then rebuilt.
func (w *batchWriter) restoreMissing(ctx context.Context, d *Database, g *tableRows) error {
	stored, err := d.findStored(ctx, g)
	if err != nil {
		return err
	}
	missing := g.missing(stored)
	if len(missing) == 0 {
		return nil
	}
	w.log.Warn("clickhouse skipped a block whose rows it had lost; the rows are restored",
		"table", g.table.name, "rows", len(missing))
	w.metrics.restored.WithLabelValues(g.table.name).Add(float64(len(missing)))

	return d.insert(ctx, g.table, rowValues(missing), "")
}

// dedupToken returns the deduplication token for the rows of a batch in one table. It contains
// the time at which the log stored the last message of the batch, which differs in a log that
// was created again and assigns the same sequences. The last message, because the limits of the
// stream drop the messages of an old batch from its start.
func dedupToken(b bus.Batch, t *eventTable) string {
	last := b.Records[len(b.Records)-1]
	return fmt.Sprintf("%s/%s/%d", b.Token, t.name, last.StoredAt.UnixNano())
}

// knownSamples detects samples that cannot be in their table yet, so that not every batch needs
// a lookup. A duplicate has the timestamp of its original. Therefore a sample that is later than
// all rows of its node is new.
//
// This holds while this store alone writes the stream. After a gap in the log, where another
// store may have written, knownSamples reads the state of the table again.
type knownSamples struct {
	next   uint64               // first sequence of the next batch
	start  time.Time            // latest row of the table when it was read
	latest map[string]time.Time // by node, of the samples since then
}

// startBatch prepares for a batch, and reads the state of the table if there is a gap.
func (k *knownSamples) startBatch(ctx context.Context, d *Database, b *bus.Batch) error {
	if k.latest != nil && b.First == k.next {
		k.next = b.Last + 1
		return nil
	}
	start, err := value[time.Time](ctx, d, "SELECT max(at) FROM node_sample")
	if err != nil {
		return err
	}
	*k = knownSamples{next: b.Last + 1, start: start, latest: map[string]time.Time{}}
	return nil
}

func (k *knownSamples) maybeStored(g *tableRows) *tableRows {
	maybe := &tableRows{table: g.table}
	for i := range g.rows {
		r := &g.rows[i]
		if r.at.After(k.latest[r.key]) && r.at.After(k.start) {
			k.latest[r.key] = r.at
			continue
		}
		maybe.append(*r)
	}
	return maybe
}
