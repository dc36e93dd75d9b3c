package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Store follows the event log and fills the tables.
type Store struct {
	bus      *bus.Bus
	database *Database
	tables   []*table
	options  Options
	log      *slog.Logger
	metrics  *storeMetrics
	marks    marks         // of samples; of the one who writes their stream
	wounded  chan struct{} // holds one while a repair is wanted
	salt     string        // of deduplication tokens; "" but in a rebuild
}

// New returns a store that does nothing until Run.
func New(b *bus.Bus, d *Database, log *slog.Logger, reg prometheus.Registerer, o Options) *Store {
	var streams []string
	for _, durable := range schemas.StoreDurables() {
		streams = append(streams, durable.Stream)
	}
	return &Store{bus: b, database: d, tables: tables(), options: o, log: log, metrics: newStoreMetrics(reg, streams), wounded: make(chan struct{}, 1)}
}

// Run migrates the database as soon as it is there and fills its tables until
// ctx ends; the batches in hand are finished first, and it returns nil then. It
// waits out a database that goes away. Of several stores one writes each stream. The error is ErrNewer or ErrRefused.
//
//	JOB ───────► batches ─► job_submitted, job_started, job_epoch, … ─┐
//	NODE ──────► batches ─► node_sample (─► node_minute) ─────────────┼─► log_position ─► ack
//	REGRESSOR ─► batches ─► regressor_promoted, … ────────────────────┤
//	ADVICE ────► batches ─► job_advice (old logs: from JOB) ──────────┘
func (s *Store) Run(ctx context.Context) error {
	if err := s.database.Migrate(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrRefused) {
			return nil
		}
		return err
	}
	s.log.Info("store follows the log", "address", s.database.address)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	durables := schemas.StoreDurables()
	failures := make([]error, len(durables))
	var all sync.WaitGroup
	for i, durable := range durables {
		all.Go(func() {
			defer cancel()
			failures[i] = s.lead(ctx, durable)
		})
	}
	all.Go(func() { s.watch(ctx, durables) })
	all.Go(func() { s.repair(ctx) })
	all.Wait()
	return errors.Join(failures...)
}

// lead writes the tables of one stream while this store holds the stream's lease.
// Several stores share the streams; each is ready to take over those of another.
func (s *Store) lead(ctx context.Context, d schemas.Durable) error {
	return s.bus.Hold(ctx, d.Name, schemas.StoreLeaseTTL, func(ctx context.Context) error {
		ctx = s.database.asWriter(ctx, d.Stream)
		if err := s.database.retry(ctx, "stop the writer before", s.database.stopWriter); errors.Is(err, ErrRefused) {
			s.log.Warn("statements of a writer before may still run", "stream", d.Stream, "error", err)
		} else if err != nil {
			return nil // ctx ended
		}
		s.log.Info("store writes", "stream", d.Stream)
		writes := s.metrics.writes.WithLabelValues(d.Stream)
		writes.Set(1)
		defer writes.Set(0)
		return s.follow(ctx, d, s.write)
	})
}

// watchEvery is how often the backlog is looked at.
const watchEvery = 5 * time.Second

// watch keeps the metrics of the backlog until ctx ends.
func (s *Store) watch(ctx context.Context, durables []schemas.Durable) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		for _, d := range durables {
			looking, cancel := context.WithTimeout(ctx, watchEvery)
			found, err := s.bus.Backlog(looking, d)
			cancel()
			if err != nil {
				s.log.Debug("backlog is not known", "stream", d.Stream, "error", err)
				continue
			}
			s.metrics.found(d.Stream, found)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// follow hands the batches of one stream to handle.
func (s *Store) follow(ctx context.Context, d schemas.Durable, handle func(context.Context, bus.Batch) error) error {
	err := s.bus.ConsumeBatch(ctx, d, bus.BatchOptions{MaxMessages: s.options.MaxMessages, MaxAge: s.options.MaxAge, Prepare: s.prepare}, handle)
	if err != nil {
		return fmt.Errorf("follow %s: %w", d.Stream, err)
	}
	return nil
}

// write writes one batch. It may be called again with the same batch after any
// failure, at any point. A database that is away is waited for here, at most ten
// seconds longer than it is away; any other failure goes back to the bus, which
// repeats the batch with growing delay.
func (s *Store) write(ctx context.Context, b bus.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	s.metrics.begin(b.Stream, b.Records[0].StoredAt)
	for ; ; b.Redelivered = true {
		err := s.put(ctx, b)
		s.metrics.end(b, time.Now(), err)
		if table := brokenTable(err); table != "" {
			s.heal(ctx, table)
			return err
		}
		if err == nil || s.database.connect(ctx) == nil {
			return err
		}
		s.log.Warn("batch waits for clickhouse", "stream", b.Stream, "first", b.First, "last", b.Last, "error", err)
		if s.database.retry(ctx, "write a batch", s.database.connect) != nil {
			return err
		}
	}
}

// heal loads a table again of which a part cannot be read, and has the tables
// repaired, once for all that are found meanwhile.
func (s *Store) heal(ctx context.Context, table string) {
	if err := s.database.reload(ctx, table); err != nil {
		s.log.Error("a part of a table cannot be read, and the table cannot be loaded again: restart clickhouse, then run courier store verify --repair", "table", table, "error", err)
		return
	}
	select {
	case s.wounded <- struct{}{}:
	default: // known
	}
}

// repair repairs the tables whenever one was loaded again, until ctx ends.
func (s *Store) repair(ctx context.Context) {
	for {
		select {
		case <-s.wounded:
		case <-ctx.Done():
			return
		}
		r, err := NewVerifier(s.bus, s.database, s.log, VerifyOptions{Repair: true}).Verify(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.log.Error("tables are not repaired: run courier store verify --repair", "error", err)
			}
			continue
		}
		found, left := r.Different()
		s.log.Warn("tables were repaired", "differing_hours", found, "left", left, "busy_rows", r.Busy())
	}
}

// put tries once to write a batch.
func (s *Store) put(ctx context.Context, b bus.Batch) error {
	a, _ := b.Prepared.(*ahead)
	if a == nil {
		a = s.sorted(&b)
	}
	for _, g := range a.groups {
		if err := s.fill(ctx, b, g, a); err != nil {
			return err
		}
	}
	return s.database.advance(ctx, b.Stream, b.Last)
}

// fill writes a table's part of a batch.
func (s *Store) fill(ctx context.Context, b bus.Batch, g *group, a *ahead) error {
	found, err := s.copies(ctx, b, g)
	if err != nil {
		return err
	}
	rows, copies := g.without(found), a.copies[g.table.name]
	copies += len(g.items) - len(rows)
	if b.Redelivered { // ClickHouse may have forgotten the token: tables from a backup know none
		rows = rowsOf(g.missing(found))
	}
	if len(rows) > 0 {
		i := a.take(g.table, len(rows))
		if i == nil {
			if i, err = s.database.prepareInsert(ctx, g.table, rows, token(s.salt, b, g.table)); err != nil {
				return err
			}
		}
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	if b.Redelivered {
		// The roll-ups are rebuilt even if ClickHouse refuses the right to end statements.
		if err := s.database.stopWriter(ctx); err != nil && !errors.Is(err, ErrRefused) {
			return err
		}
		if err := s.complete(ctx, g); err != nil {
			return err
		}
		if err := s.database.rebuild(ctx, g.table.name, b.First, b.Last); err != nil {
			return err
		}
	}
	if copies > 0 {
		s.log.Debug("copies dropped", "table", g.table.name, "events", copies)
	}
	s.metrics.rows.WithLabelValues(g.table.name).Add(float64(len(rows)))
	s.metrics.copies.WithLabelValues(g.table.name).Add(float64(copies))
	return nil
}

// copies returns where the table has events of a batch already.
func (s *Store) copies(ctx context.Context, b bus.Batch, g *group) ([]place, error) {
	if g.table.name == "node_sample" {
		if err := s.marks.follow(ctx, s.database, &b); err != nil {
			return nil, err
		}
		if doubtful := s.marks.doubtful(g); !b.Redelivered {
			g = doubtful
		}
	}
	if len(g.items) == 0 {
		return nil, nil
	}
	return s.database.places(ctx, g)
}

// complete brings in what a table still lacks of a batch that was inserted again.
func (s *Store) complete(ctx context.Context, g *group) error {
	found, err := s.database.places(ctx, g)
	if err != nil {
		return err
	}
	missing := g.missing(found)
	if len(missing) == 0 {
		return nil
	}
	s.log.Warn("clickhouse knows a batch that it lost; its rows are restored", "table", g.table.name, "rows", len(missing))
	s.metrics.restored.WithLabelValues(g.table.name).Add(float64(len(missing)))
	suffix := "restored"
	if stream := missing[0].stream; stream != "" {
		suffix += "_" + strings.ToLower(stream) // two writers may restore the table at once
	}
	return s.database.restore(ctx, g.table, missing, suffix)
}

// token returns the deduplication token of a table's part of a batch. The
// instant at which the log stored the batch's last message tells this log from
// one that was thrown away and counts from 1 again; of a batch that is repeated
// late, the stream's limits drop that message last.
func token(salt string, b bus.Batch, t *table) string {
	last := b.Records[len(b.Records)-1]
	return fmt.Sprintf("%s%s/%s/%d", salt, b.Token, t.name, last.StoredAt.UnixNano())
}
