package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"courier/bus"
	"courier/schemas"
)

// Verify compares the log of b with the tables that a store fills from it, and the tables with their
// roll-ups. Stores may write at the same time. It compares:
//
//   - of each stream the messages that the log still has, up to the last sequence that a store
//     has written, so that messages in flight are no difference. Rows from before the first
//     message of the log, which the stream's limits have dropped, are counted as older and
//     checked for duplicates only.
//   - of each table the hours, by the events' timestamps, from which its TTL has deleted nothing.
//   - of each event its row at the sequence of its message. An event without a row is missing, unless
//     the table has it at another sequence: the store drops duplicates.
//
// Verify changes nothing; Rebuild restores the tables of a stream that differ.
//
// The error matches ErrOtherLog, ErrNewer, ErrTablesDiffer or ErrRefused, or reports an unreachable server.
// Verify waits for a NATS server that becomes unreachable later.
func Verify(ctx context.Context, b *bus.Bus, d *Database, o VerifyOptions) (*Report, error) {
	if err := checkTables(ctx, b, d); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	d, end, err := d.settled(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer end()
	o.windowRows = cmp.Or(o.windowRows, defaultWindowRows)
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	v := &verifier{bus: b, database: d, options: o}
	r, err := v.verifyAll(ctx)
	if table := unreadableTable(err); table != "" {
		err = fmt.Errorf("a part of %s cannot be read: run courier store rebuild: %w", table, err)
	}
	return r, err
}

// checkTables returns an error unless the database has the tables of this program and this log.
func checkTables(ctx context.Context, b *bus.Bus, d *Database) error {
	if err := checkNoShards(ctx, b, d); err != nil {
		return err
	}
	if d.shard == nil {
		if err := d.checkSingle(ctx); err != nil {
			return err
		}
	}
	return d.checkMigrated(ctx)
}

func (v *verifier) verifyAll(ctx context.Context) (*Report, error) {
	var streams []*StreamReport
	for _, durable := range v.database.shard.durables() {
		s, err := v.verifyStream(ctx, durable)
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", durable.Stream, err)
		}
		streams = append(streams, s)
	}
	return newReport(streams), nil
}

// verifyStream compares one stream with its tables, and these with their roll-ups.
func (v *verifier) verifyStream(ctx context.Context, d schemas.Durable) (*StreamReport, error) {
	position, err := recordedPosition(ctx, v.bus, v.database, d.Stream)
	if err != nil {
		return nil, err
	}
	backlog, err := v.bus.Backlog(ctx, d)
	if err != nil {
		return nil, err
	}
	// In new tables and in tables of an old backup, the recorded position is too low.
	position = max(position, backlog.Done)
	first, _, err := v.bus.Bounds(ctx, d.Stream)
	if err != nil {
		return nil, err
	}
	c := &streamCheck{verifier: v, report: &StreamReport{
		Stream: d.Stream,
		Shard:  v.database.shard.number(),
		First:  min(first, position+1),
		Last:   position,
	}}
	for _, t := range tables() {
		if t.stream != d.Stream {
			continue
		}
		if err := c.addTable(ctx, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return c.report, c.run(ctx)
}

// addTable compares a table with its roll-ups, and counts the rows that the log cannot explain.
func (c *streamCheck) addTable(ctx context.Context, of *eventTable) error {
	kept, err := c.database.keptHours(ctx, of.name, "at")
	if err != nil {
		return err
	}
	t := &tableCheck{
		eventTable: of,
		kept:       kept,
		report:     &TableReport{Table: of.name},
		hours:      make(map[int64]*Hour),
		logged:     make(map[eventKey]eventRow),
	}
	c.tables = append(c.tables, t)
	c.report.Tables = append(c.report.Tables, t.report)

	windows, err := c.windows(ctx, t, c.report.Last)
	if err != nil {
		return err
	}
	for i, w := range windows {
		c.options.Progress(t.name, uint64(i), uint64(len(windows)))
		if err := c.countDuplicates(ctx, t, w); err != nil {
			return err
		}
	}
	rollUps, err := c.verifyRollUps(ctx, of, c.report.Last, kept, windows)
	c.report.RollUps = append(c.report.RollUps, rollUps...)
	return err
}

// ErrOtherLog reports that the tables hold later sequences than the log ever assigned: they
// belong to a different log, or the log was created again.
var ErrOtherLog = errors.New("the tables hold more than the log ever had")

// VerifyOptions configures a verification.
type VerifyOptions struct {
	// Progress, if set, is called at intervals from one goroutine.
	Progress func(action string, done, total uint64)

	windowRows uint64 // rows that are compared at once; default defaultWindowRows
}

// defaultWindowRows bounds the memory of Verify and ClickHouse: an event takes about 200 bytes.
const defaultWindowRows = 250_000

type verifier struct {
	bus      *bus.Bus
	database *Database
	options  VerifyOptions
}

// recordedPosition returns the recorded position. ErrOtherLog: the stream ends before it.
func recordedPosition(ctx context.Context, b *bus.Bus, d *Database, stream string) (uint64, error) {
	position, err := d.Position(ctx, stream)
	if err != nil {
		return 0, err
	}
	last, err := b.LastSequence(ctx, stream)
	if err != nil {
		return 0, err
	}
	if position > last {
		return 0, fmt.Errorf("%w: the tables hold it up to %d, but it ends at %d",
			ErrOtherLog, position, last)
	}
	return position, nil
}
