package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Store writes the event log into the tables.
type Store struct {
	bus      *bus.Bus
	database *Database
	options  Options
	log      *slog.Logger
	metrics  *storeMetrics
	writer   *batchWriter
}

// New returns a store that does nothing until Run.
func New(b *bus.Bus, d *Database, log *slog.Logger, reg prometheus.Registerer, o Options) *Store {
	var streams []string
	for _, durable := range d.shard.durables() {
		streams = append(streams, durable.Stream)
	}
	m := newStoreMetrics(reg, streams)
	w := &batchWriter{
		database: d,
		tables:   tables(),
		log:      log,
		metrics:  m,
		reloaded: make(chan struct{}, 1),
	}
	return &Store{bus: b, database: d, options: o, log: log, metrics: m, writer: w}
}

// Run migrates the database as soon as it is available, and writes the tables until ctx ends.
// It then finishes the current batches and returns nil. It waits while the database is
// unavailable. Of several stores, one writes each stream. The error matches ErrNewer, ErrTablesDiffer
// or ErrRefused.
//
//	JOB ───────► batches ─► job_submitted, job_started, job_epoch, … ─┐
//	NODE ──────► batches ─► node_sample (─► node_minute) ─────────────┼─► log_position ─► ack
//	REGRESSOR ─► batches ─► regressor_promoted, … ────────────────────┤
//	ADVICE ────► batches ─► job_advice ───────────────────────────────┘
func (s *Store) Run(ctx context.Context) error {
	err := s.database.retry(ctx, "read the shard map", func(ctx context.Context) error {
		return checkNoShards(ctx, s.bus, s.database)
	})
	if err == nil {
		err = s.database.Migrate(ctx)
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrRefused) {
			return nil
		}
		return err
	}
	s.log.Info("store follows the log", "address", s.database.address)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	durables := s.database.shard.durables()
	failures := make([]error, len(durables))
	var all sync.WaitGroup
	for i, durable := range durables {
		all.Go(func() {
			defer cancel()
			failures[i] = s.writeStream(ctx, durable)
		})
	}
	all.Go(func() { s.watchBacklog(ctx, durables) })
	all.Go(func() { s.rebuildDamaged(ctx) })
	all.Wait()
	return errors.Join(failures...)
}

// writeStream writes the tables of one stream while this store holds its lease.
func (s *Store) writeStream(ctx context.Context, d schemas.Durable) error {
	return s.bus.Hold(ctx, d.Name, schemas.StoreLeaseTTL, func(ctx context.Context) error {
		ctx = s.database.asWriter(ctx, d.Stream)
		err := s.database.retry(ctx, "stop the previous writer", s.database.stopWriter)
		if errors.Is(err, ErrRefused) {
			s.log.Warn("statements of the previous writer may still run", "stream", d.Stream, "error", err)
		} else if err != nil {
			return nil // ctx ended
		}

		s.log.Info("store writes", "stream", d.Stream)
		isWriter := s.metrics.isWriter.WithLabelValues(d.Stream)
		isWriter.Set(1)
		defer isWriter.Set(0)
		return s.consume(ctx, d, s.writer.writeBatch)
	})
}

func (s *Store) consume(
	ctx context.Context, d schemas.Durable, handle func(context.Context, bus.Batch) error,
) error {
	o := bus.BatchOptions{
		MaxMessages: s.options.MaxMessages,
		MaxAge:      s.options.MaxAge,
		Rewound: func(ctx context.Context, first uint64) error {
			return s.writer.clear(ctx, d.Stream, first)
		},
	}
	if shard := s.database.shard; shard != nil {
		o.Accept = shard.owns
	}
	if err := s.bus.ConsumeBatch(ctx, d, o, handle); err != nil {
		return fmt.Errorf("consume %s: %w", d.Stream, err)
	}
	return nil
}

const backlogInterval = 5 * time.Second

func (s *Store) watchBacklog(ctx context.Context, durables []schemas.Durable) {
	tick := time.NewTicker(backlogInterval)
	defer tick.Stop()
	last := make([]bus.Backlog, len(durables))
	for {
		for i, d := range durables {
			reading, cancel := context.WithTimeout(ctx, backlogInterval)
			backlog, err := s.bus.Backlog(reading, d)
			cancel()
			if err == nil {
				last[i] = backlog
			} else {
				s.log.Debug("backlog cannot be read", "stream", d.Stream, "error", err)
			}
			s.metrics.setLag(d.Stream, last[i], time.Now())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// rebuildDamaged verifies the tables whenever one was reloaded, until ctx ends, and rebuilds those of
// the streams that have lost rows.
func (s *Store) rebuildDamaged(ctx context.Context) {
	for {
		select {
		case <-s.writer.reloaded:
		case <-ctx.Done():
			return
		}
		r, err := Verify(ctx, s.bus, s.database, VerifyOptions{})
		if s.writer.reloadUnreadable(ctx, err) {
			continue
		}
		var damaged []string
		if err == nil {
			damaged = r.Damaged
		}
		if len(damaged) > 0 {
			s.log.Warn("tables are rebuilt from the log", "streams", damaged)
			_, err = rewind(ctx, s.bus, s.database, damaged)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("tables are not verified: run courier store verify", "error", err)
		}
	}
}
