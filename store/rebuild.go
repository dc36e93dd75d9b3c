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

// ErrStoreRunning reports that a store consumes the log.
var ErrStoreRunning = errors.New("a store follows the log; stop it first")

// RebuildOptions configures a rebuild.
type RebuildOptions struct {
	MaxMessages int // of a batch; default schemas.MaxBatchMessages

	// Progress, if set, is called at intervals from one goroutine.
	Progress func(action string, done, total uint64)
}

// Rebuild restores all tables and roll-ups from the log, also in an empty database. It deletes
// the rows of events that the log still has, and then writes the log again like a store. Rows of
// events that the log has dropped stay, with their part in the roll-ups.
//
//	intents, positions ─► start of the log     rows from there on: deleted     log: written
//
// After a crash at any point, call it again, or start a store, which continues the writing. The
// error matches ErrStoreRunning if a store is running, ErrOtherLog if the tables hold later
// sequences than the log ever assigned, and otherwise the errors of Migrate.
func Rebuild(
	ctx context.Context, b *bus.Bus, d *Database, log *slog.Logger, o RebuildOptions,
) error {
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	if err := checkNoShards(ctx, b, d); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := d.Migrate(ctx); err != nil {
		return err
	}
	settled, end, err := d.settled(ctx)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	defer end()
	v := NewVerifier(b, settled, log, VerifyOptions{Repair: true, Progress: o.Progress})
	r := &rebuilder{Verifier: v, written: d, options: o}

	if err := holdRepair(ctx, b, r.run); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// holdRepair calls work while no other repair, rebuild or reshard runs. It returns an error if ctx
// ends while it waits, also after the lease was lost during work.
func holdRepair(ctx context.Context, b *bus.Bus, work func(context.Context) error) error {
	isDone := false
	err := b.Hold(ctx, schemas.LeaseRepair, schemas.LeaseTTL, func(ctx context.Context) error {
		err := work(ctx)
		isDone = err == nil
		return err
	})
	if err == nil && !isDone {
		err = fmt.Errorf("wait for the end of another repair or reshard: %w", ctx.Err())
	}
	return err
}

// rebuilder is one call of Rebuild.
type rebuilder struct {
	*Verifier
	written *Database // of all replicas
	options RebuildOptions
}

func (r *rebuilder) run(ctx context.Context) error {
	durables := r.database.shard.durables()
	for _, d := range durables {
		hasReader, err := r.bus.HasReader(ctx, d)
		if err != nil {
			return err
		}
		if hasReader {
			return fmt.Errorf("%s: %w", d.Stream, ErrStoreRunning)
		}
		// With a different log, rows that only the tables have would be lost.
		if _, err := recordedPosition(ctx, r.bus, r.database, d.Stream); err != nil {
			return fmt.Errorf("%s: %w", d.Stream, err)
		}
	}

	last := make(map[string]uint64)
	for _, d := range durables {
		first, until, err := r.bus.Rewind(ctx, d)
		if err != nil {
			return err
		}
		last[d.Stream] = until
		if err := r.clear(ctx, d.Stream, first); err != nil {
			return fmt.Errorf("%s: %w", d.Stream, err)
		}
	}
	return r.writeLog(ctx, last)
}

// clear deletes the rows of a stream from the sequence first on.
func (r *rebuilder) clear(ctx context.Context, stream string, first uint64) error {
	statements := []string{fmt.Sprintf("DELETE FROM log_position WHERE stream = '%s'", stream)}
	for _, t := range r.tables {
		if t.stream != stream {
			continue
		}
		if first > 1 {
			statements = append(statements, fmt.Sprintf(
				"DELETE FROM %s WHERE sequence >= %d", t.name, first))
			continue
		}
		// The log has all events, so the roll-ups are cleared, too.
		statements = append(statements, "TRUNCATE TABLE "+t.name)
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
	if err := r.database.recordPosition(ctx, stream, first-1); err != nil {
		return err
	}
	for _, t := range r.tables {
		if t.stream != stream {
			continue
		}
		if err := r.repairRollUps(ctx, t, stream, first-1); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// repairRollUps recomputes the roll-ups of a table from its remaining rows, in the hours from
// which its TTL has deleted nothing.
func (r *rebuilder) repairRollUps(
	ctx context.Context, t *eventTable, stream string, position uint64,
) error {
	kept, err := r.database.keptHours(ctx, t.name, "at", 0)
	if err != nil {
		return err
	}
	log := &logHours{stream: stream, position: position}
	windows, err := r.windows(ctx, log, t, kept)
	if err != nil {
		return err
	}
	_, err = r.verifyRollUps(ctx, t, position, kept, windows)
	return err
}

// writeLog writes the log again.
func (r *rebuilder) writeLog(ctx context.Context, last map[string]uint64) error {
	// ClickHouse may know the tokens of the deleted rows.
	return r.writeUntil(ctx, last, r.database.shard.tokenPrefix()+rand.Text()+"/")
}

// writeUntil runs a store until the tables hold the streams up to their last sequences.
func (r *rebuilder) writeUntil(
	ctx context.Context, last map[string]uint64, tokenPrefix string,
) error {
	s := New(r.bus, r.written, r.log, nil, Options{MaxMessages: r.options.MaxMessages})
	s.tokenPrefix = tokenPrefix
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// A dead letter at the end of a stream has no position, so progress follows the backlog.
		done, total := uint64(0), uint64(0)
		for _, d := range r.database.shard.durables() {
			b, err := r.bus.Backlog(ctx, d)
			if err != nil && ctx.Err() == nil {
				r.log.Debug("backlog cannot be read", "stream", d.Stream, "error", err)
			}
			done += min(b.Done, last[d.Stream])
			total += last[d.Stream]
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
