package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"courier/bus"
	"courier/schemas"
)

// ErrFollowed says that a store fills the tables now.
var ErrFollowed = errors.New("a store follows the log; stop it first")

// RebuildOptions says how Rebuild works.
type RebuildOptions struct {
	MaxMessages int                                    // in one batch; default schemas.MaxBatchMessages
	Progress    func(doing string, done, total uint64) // called now and then from one goroutine
}

// Rebuild makes all tables and roll-ups anew from the log, also of a database that
// is empty: what they hold of events that the log still has is taken out, and the
// log is replayed through the store's own path. What the log has dropped stays as
// it is, and its part in the roll-ups.
//
//	intents, positions ─► begin of the log      rows from there on ─► out      replay ─► in
//
// Killed at any point it is begun again, or finished by the store, which goes on
// where the replay was. The error is ErrFollowed while a store runs, ErrOtherLog if
// the tables hold more than the log ever had, and otherwise as of Migrate.
func Rebuild(ctx context.Context, b *bus.Bus, d *Database, log *slog.Logger, o RebuildOptions) error {
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	if err := d.Migrate(ctx); err != nil {
		return err
	}
	r := &rebuilder{Verifier: NewVerifier(b, d, log, VerifyOptions{Repair: true, Progress: o.Progress}), options: o}
	held := false
	err := b.Hold(ctx, schemas.LeaseRepair, schemas.LeaseTTL, func(ctx context.Context) error {
		held = true
		return r.run(ctx)
	})
	if err == nil && !held {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// rebuilder is one Rebuild.
type rebuilder struct {
	*Verifier
	options RebuildOptions
}

func (r *rebuilder) run(ctx context.Context) error {
	durables := schemas.StoreDurables()
	for _, d := range durables {
		followed, err := r.bus.HasReader(ctx, d)
		if err != nil {
			return err
		}
		if followed {
			return fmt.Errorf("%s: %w", d.Stream, ErrFollowed)
		}
		if _, err := recorded(ctx, r.bus, r.database, d.Stream); err != nil {
			return fmt.Errorf("%s: %w", d.Stream, err) // what only the tables have would be lost
		}
	}
	last := make(map[string]uint64)
	for _, d := range durables {
		first, until, err := r.bus.Rewind(ctx, d)
		if err != nil {
			return err
		}
		last[d.Stream] = until
		if err := r.forget(ctx, d.Stream, first); err != nil {
			return fmt.Errorf("%s: %w", d.Stream, err)
		}
	}
	return r.replay(ctx, last)
}

// forget takes out of a stream's tables what the log has from a sequence on.
func (r *rebuilder) forget(ctx context.Context, stream string, first uint64) error {
	statements := []string{fmt.Sprintf("DELETE FROM log_position WHERE stream = '%s'", stream)}
	for _, t := range r.tables {
		if !t.holds(stream) {
			continue
		}
		if first > 1 || len(t.streams) > 1 {
			statements = append(statements, fmt.Sprintf("DELETE FROM %s WHERE sequence >= %d AND %s", t.name, first, t.of(stream)))
			continue
		}
		statements = append(statements, "TRUNCATE TABLE "+t.name) // the log has all that ever was
		for _, u := range rollUps[t.name] {
			statements = append(statements, "TRUNCATE TABLE "+u.name)
		}
	}
	for i, s := range statements {
		r.options.Progress("clear "+stream, uint64(i), uint64(len(statements)))
		if err := r.database.exec(ctx, "clear "+stream, s); err != nil {
			return err
		}
	}
	if first <= 1 {
		return nil
	}
	if err := r.database.advance(ctx, stream, first-1); err != nil {
		return err
	}
	for _, t := range r.tables {
		if !t.holds(stream) {
			continue
		}
		if err := r.subtract(ctx, t, stream, first-1); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// subtract leaves in a table's roll-ups only the part of the rows that the table
// has still, in the hours that it has not dropped by age.
func (r *rebuilder) subtract(ctx context.Context, t *table, stream string, position uint64) error {
	life, err := r.database.life(ctx, t.name, "at", 0)
	if err != nil {
		return err
	}
	windows, err := r.windows(ctx, &tally{stream: stream, position: position}, t, life)
	if err != nil {
		return err
	}
	_, err = r.rollUps(ctx, t, position, life, windows)
	return err
}

// replay runs a store until the tables have the streams up to their last sequences.
func (r *rebuilder) replay(ctx context.Context, last map[string]uint64) error {
	s := New(r.bus, r.database, r.log, nil, Options{MaxMessages: r.options.MaxMessages})
	s.salt = rand.Text() + "/" // ClickHouse may know the tokens of the rows that were taken out
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, total := uint64(0), uint64(0)
		for _, d := range schemas.StoreDurables() { // not by positions: dead letters have none
			b, err := r.bus.Backlog(ctx, d)
			if err != nil && ctx.Err() == nil {
				r.log.Debug("backlog is not known", "stream", d.Stream, "error", err)
			}
			done, total = done+min(b.Done, last[d.Stream]), total+last[d.Stream]
		}
		r.options.Progress("replay", done, total)
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
