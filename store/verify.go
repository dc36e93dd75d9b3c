package store

import (
	"context"
	"fmt"

	"courier/schemas"
)

// Verify compares the log with the tables, and the tables with their roll-ups. Stores may write
// at the same time. It compares:
//
//   - of each stream the messages that the log still has, up to the last sequence that a store
//     has written, so that messages in flight are no difference. Rows from before the first
//     message of the log, which the stream's limits have dropped, are counted as older and
//     checked for duplicates only.
//   - of each table the hours, by the events' timestamps, from which its TTL has deleted nothing.
//   - of each hour the distinct event_ids: their number, and the sum of a 64-bit hash of each
//     (the first eight bytes of the MD5, available in Go and in ClickHouse). A sum does not
//     depend on the order, and unlike an exclusive or it shows duplicates. Only if an hour
//     differs are its events compared one by one. An event with a duplicate that the store
//     dropped is found in the hour of the original.
//
// Verify changes nothing; Rebuild restores the tables of a stream that differ.
//
// The error matches ErrOtherLog, ErrNewer, ErrTablesDiffer or ErrRefused, or reports an unreachable server.
// Verify waits for a NATS server that becomes unreachable later.
func (v *Verifier) Verify(ctx context.Context) (*Report, error) {
	if err := v.checkTables(ctx); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	d, end, err := v.database.settled(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer end()
	onOne := *v
	onOne.database = d
	r, err := onOne.verifyAll(ctx)
	if table := unreadableTable(err); table != "" {
		err = fmt.Errorf("a part of %s cannot be read: run courier store rebuild: %w", table, err)
	}
	return r, err
}

// checkTables returns an error unless the database has the tables of this program and this log.
func (v *Verifier) checkTables(ctx context.Context) error {
	if err := checkNoShards(ctx, v.bus, v.database); err != nil {
		return err
	}
	if v.database.shard == nil {
		if err := v.database.checkSingle(ctx); err != nil {
			return err
		}
	}
	return v.database.checkMigrated(ctx)
}

func (v *Verifier) verifyAll(ctx context.Context) (*Report, error) {
	r := &Report{}
	for _, durable := range v.database.shard.durables() {
		s, err := v.verifyStream(ctx, durable)
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", durable.Stream, err)
		}
		r.Streams = append(r.Streams, s)
	}
	return r, nil
}

// verifyStream compares one stream with its tables.
func (v *Verifier) verifyStream(ctx context.Context, d schemas.Durable) (*StreamReport, error) {
	name := d.Stream
	position, err := recordedPosition(ctx, v.bus, v.database, name)
	if err != nil {
		return nil, err
	}
	backlog, err := v.bus.Backlog(ctx, d)
	if err != nil {
		return nil, err
	}
	// In new tables and in tables of an old backup, the recorded position is too low.
	position = max(position, backlog.Done)
	log, err := v.readLogHours(ctx, name, position)
	if err != nil {
		return nil, err
	}
	s := &StreamReport{
		Stream: name,
		Shard:  v.database.shard.number(),
		First:  log.first,
		Last:   position,
		Events: log.events,
	}
	for _, t := range v.tables {
		if t.stream != name {
			continue
		}
		if err := v.verifyTable(ctx, log, t, s); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return s, nil
}

// verifyTable compares one table with the log and with its roll-ups.
func (v *Verifier) verifyTable(ctx context.Context, log *logHours, t *eventTable, s *StreamReport) error {
	kept, err := v.database.keptHours(ctx, t.name, "at", v.options.Since)
	if err != nil {
		return err
	}
	windows, err := v.windows(ctx, log, t, kept)
	if err != nil {
		return err
	}

	report := &TableReport{Table: t.name, Expired: log.eventsOutside(t.name, kept)}
	s.Tables = append(s.Tables, report)
	hours := make(map[int64]*Hour)
	for i, w := range windows {
		v.options.Progress(t.name, uint64(i), uint64(len(windows)))
		if err := v.addTableHours(ctx, log, t, w, hours); err != nil {
			return err
		}
	}
	report.Hours = log.join(t.name, hours, kept)
	if err := v.compareEvents(ctx, log, t, report.Hours); err != nil {
		return err
	}

	rollUps, err := v.verifyRollUps(ctx, t, log.position, kept, windows)
	s.RollUps = append(s.RollUps, rollUps...)
	return err
}
