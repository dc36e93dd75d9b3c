package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"courier/bus"
	"courier/schemas"
)

// ErrOtherLog says that the tables hold more of a stream than the log ever had:
// they belong to another log, or this one was thrown away and began again.
var ErrOtherLog = errors.New("the tables hold more than the log ever had")

// VerifyOptions says what Verify does beside comparing.
type VerifyOptions struct {
	Since    time.Duration                          // only events of the last so long; default: all that the tables keep
	Repair   bool                                   // bring in what is missing, take out what is double, compute wrong roll-ups anew
	Progress func(doing string, done, total uint64) // called now and then from one goroutine
	window   uint64                                 // rows that are looked at together; default defaultWindow
}

// defaultWindow bounds the memory of Verify, here and in ClickHouse: so many
// events are told apart at once, some 100 bytes each.
const defaultWindow = 500_000

// Verifier holds the tables against the log.
type Verifier struct {
	bus      *bus.Bus
	database *Database
	tables   []*table
	options  VerifyOptions
	log      *slog.Logger
}

// NewVerifier returns a verifier of a database that a store fills, or has filled,
// from the log behind b.
func NewVerifier(b *bus.Bus, d *Database, log *slog.Logger, o VerifyOptions) *Verifier {
	if o.window == 0 {
		o.window = defaultWindow
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	return &Verifier{bus: b, database: d, tables: tables(), options: o, log: log}
}

// Verify compares the log with the tables, and the roll-ups with theirs, while
// stores write. What it compares:
//
//   - Of each stream what the log still keeps, up to the sequence that the tables
//     are recorded to hold, or that stores have written, be it into other tables:
//     what is in flight is no difference. Rows from before
//     the log's first message are what its age or size has dropped; they are
//     counted as older, and only doubles are looked for among them.
//   - Of each table the hours, by the events' own time, that its time to live
//     spares altogether.
//   - Of each hour the distinct event_ids: their number, and the sum of a 64-bit
//     hash of each (the first eight bytes of its MD5, which Go and ClickHouse both
//     have). A sum has no order, and unlike an exclusive or it does not lose what is
//     there twice. Only hours that differ are looked at event by event; a copy
//     that the store dropped is found where its original is.
//
// With Repair each difference is mended and looked at again. It is safe beside a
// running store and after a death at any point; two repairs take turns. What only
// the table has stays: nobody can tell that it is wrong. A table with a part that
// ClickHouse cannot read, as after a full disk, is loaded again without it.
//
// The error is ErrOtherLog, ErrNewer, ErrRefused, or that of a bus or database
// that went away. A server that is away after the start is waited for.
func (v *Verifier) Verify(ctx context.Context) (*Report, error) {
	if err := v.database.current(ctx); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if !v.options.Repair {
		r, err := v.verify(ctx)
		if table := brokenTable(err); table != "" {
			err = fmt.Errorf("a part of %s cannot be read, which a repair mends: %w", table, err)
		}
		return r, err
	}
	var r *Report
	err := v.bus.Hold(ctx, schemas.LeaseRepair, schemas.LeaseTTL, func(ctx context.Context) (err error) {
		const parts = 20 // that cannot be read, of as many tables
		for range parts {
			r, err = v.verify(ctx)
			table := brokenTable(err)
			if table == "" {
				return err
			}
			if err := v.database.reload(ctx, table); err != nil {
				return err
			}
		}
		return err
	})
	if err == nil && r == nil {
		err = fmt.Errorf("wait for another repair: %w", ctx.Err())
	}
	return r, err
}

func (v *Verifier) verify(ctx context.Context) (*Report, error) {
	r := &Report{Repair: v.options.Repair}
	for _, durable := range schemas.StoreDurables() {
		s, err := v.stream(ctx, durable)
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", durable.Stream, err)
		}
		r.Streams = append(r.Streams, s)
	}
	return r, nil
}

// recorded is up to where a database holds a stream, by its own record.
func recorded(ctx context.Context, b *bus.Bus, d *Database, stream string) (uint64, error) {
	position, err := d.Position(ctx, stream)
	if err != nil {
		return 0, err
	}
	last, err := b.LastSequence(ctx, stream)
	if err != nil {
		return 0, err
	}
	if position > last {
		return 0, fmt.Errorf("%w: they hold it up to %d, it ends at %d", ErrOtherLog, position, last)
	}
	return position, nil
}

// stream compares one stream with its tables.
func (v *Verifier) stream(ctx context.Context, d schemas.Durable) (*StreamReport, error) {
	name := d.Stream
	position, err := recorded(ctx, v.bus, v.database, name)
	if err != nil {
		return nil, err
	}
	backlog, err := v.bus.Backlog(ctx, d)
	if err != nil {
		return nil, err
	}
	position = max(position, backlog.Done) // tables of an old backup, or new ones, know less than has been written
	log, err := v.tally(ctx, name, position)
	if err != nil {
		return nil, err
	}
	s := &StreamReport{Stream: name, First: log.first, Last: position, Events: log.events}
	for _, t := range v.tables {
		if !t.holds(name) {
			continue
		}
		if err := v.table(ctx, log, t, s); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return s, nil
}

// table compares one table with the log, and its roll-ups with it.
func (v *Verifier) table(ctx context.Context, log *tally, t *table, s *StreamReport) error {
	life, err := v.database.life(ctx, t.name, "at", v.options.Since)
	if err != nil {
		return err
	}
	windows, err := v.windows(ctx, log, t, life)
	if err != nil {
		return err
	}
	report := &TableReport{Table: t.name, Expired: log.outside(t.name, life)}
	s.Tables = append(s.Tables, report)
	hours := make(map[int64]*Hour)
	for i, w := range windows {
		v.options.Progress(t.name, uint64(i), uint64(len(windows)))
		if err := v.sum(ctx, log, t, w, hours); err != nil {
			return err
		}
	}
	report.Hours = log.join(t.name, hours, life)
	if err := v.examine(ctx, log, t, report.Hours); err != nil {
		return err
	}
	rolled, err := v.rollUps(ctx, t, log.position, life, windows)
	s.RollUps = append(s.RollUps, rolled...)
	return err
}
