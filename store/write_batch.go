package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/bus"
)

// writeBatch writes one batch. After a failure at any point it may be called again with the
// same batch. While the database is unavailable it waits, at most ten seconds beyond the end of
// the outage. Other errors go to the bus, which calls it again with a growing delay.
func (s *Store) writeBatch(ctx context.Context, b bus.Batch) error {
	if len(b.Records) > 0 {
		s.metrics.startBatch(b.Stream, b.Records[0].StoredAt)
	} else if s.database.shard == nil {
		return nil
	} // Readers need the position of a shard, also if the batch has no event for it.
	for ; ; b.Redelivered = true {
		err := s.writeOnce(ctx, b)
		s.metrics.finishAttempt(b, time.Now(), err)
		if s.reloadUnreadable(ctx, err) {
			return err
		}
		if err == nil || s.database.connect(ctx) == nil {
			return err
		}
		s.log.Warn("batch waits for clickhouse",
			"stream", b.Stream, "first", b.First, "last", b.Last, "error", err)
		if s.database.retry(ctx, "write a batch", s.database.connect) != nil {
			return err
		}
	}
}

// writeOnce tries once to write a batch.
func (s *Store) writeOnce(ctx context.Context, b bus.Batch) error {
	p, _ := b.Prepared.(*preparedBatch)
	if p == nil {
		p = s.groupBatch(&b)
	}
	for _, g := range p.groups {
		if err := s.writeGroup(ctx, b, g, p); err != nil {
			return err
		}
	}
	return s.database.recordPosition(ctx, b.Stream, b.Last)
}

// writeGroup writes the rows of one table.
func (s *Store) writeGroup(ctx context.Context, b bus.Batch, g *tableRows, p *preparedBatch) error {
	stored, err := s.storedRows(ctx, b, g)
	if err != nil {
		return err
	}
	rows, duplicates := g.withoutDuplicates(stored), p.duplicates[g.table.name]
	duplicates += len(g.rows) - len(rows)
	if b.Redelivered {
		// ClickHouse may have forgotten the token: a table from a backup has none.
		rows = rowValues(g.missing(stored))
	}

	if len(rows) > 0 {
		if err := s.insertRows(ctx, b, g.table, rows, p); err != nil {
			return err
		}
	}
	if b.Redelivered {
		if err := s.completeGroup(ctx, b, g); err != nil {
			return err
		}
	}

	if duplicates > 0 {
		s.log.Debug("duplicates dropped", "table", g.table.name, "events", duplicates)
	}
	s.metrics.rows.WithLabelValues(g.table.name).Add(float64(len(rows)))
	s.metrics.duplicates.WithLabelValues(g.table.name).Add(float64(duplicates))
	return nil
}

// insertRows inserts rows, by the prepared insert if there is one for them.
func (s *Store) insertRows(
	ctx context.Context, b bus.Batch, t *eventTable, rows []any, p *preparedBatch,
) (err error) {
	i := p.takeInsert(t, len(rows))
	if i == nil {
		i, err = s.database.prepareInsert(ctx, t, rows, dedupToken(b, t))
		if err != nil {
			return err
		}
	}
	return i.send(ctx)
}

// storedRows returns the rows of the table that have an event of the batch. For samples of a
// new batch it asks the table only about events that may be there.
func (s *Store) storedRows(ctx context.Context, b bus.Batch, g *tableRows) ([]storedRow, error) {
	if g.table.name == "node_sample" {
		if err := s.samples.startBatch(ctx, s.database, &b); err != nil {
			return nil, err
		}
		if maybeStored := s.samples.maybeStored(g); !b.Redelivered {
			g = maybeStored
		}
	}
	if len(g.rows) == 0 {
		return nil, nil
	}
	return s.database.findStored(ctx, g)
}

// completeGroup restores the rows and roll-ups that an earlier attempt may have left
// incomplete.
func (s *Store) completeGroup(ctx context.Context, b bus.Batch, g *tableRows) error {
	// Without the right to end statements, the roll-ups are rebuilt nevertheless.
	if err := s.database.stopWriter(ctx); err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	d, end, err := s.database.settled(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := s.restoreMissing(ctx, d, g); err != nil {
		return err
	}
	return d.rebuildRollUps(ctx, g.table.name, b.First, b.Last)
}

// restoreMissing writes the rows that the table still lacks after an insert. They count in the
// roll-ups once more, which are then rebuilt.
func (s *Store) restoreMissing(ctx context.Context, d *Database, g *tableRows) error {
	stored, err := d.findStored(ctx, g)
	if err != nil {
		return err
	}
	missing := g.missing(stored)
	if len(missing) == 0 {
		return nil
	}
	s.log.Warn("clickhouse skipped a block whose rows it had lost; the rows are restored",
		"table", g.table.name, "rows", len(missing))
	s.metrics.restored.WithLabelValues(g.table.name).Add(float64(len(missing)))

	i, err := d.prepareInsert(ctx, g.table, rowValues(missing), "")
	if err != nil {
		return err
	}
	return i.send(ctx)
}

// dedupToken returns the deduplication token for the rows of a batch in one table. It contains
// the time at which the log stored the last message of the batch, which differs in a log that
// was created again and assigns the same sequences. The last message, because the limits of the
// stream drop the messages of an old batch from its start.
func dedupToken(b bus.Batch, t *eventTable) string {
	last := b.Records[len(b.Records)-1]
	return fmt.Sprintf("%s/%s/%d", b.Token, t.name, last.StoredAt.UnixNano())
}
