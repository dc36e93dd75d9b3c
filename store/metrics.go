package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// databaseMetrics count statements, whoever asks for them.
type databaseMetrics struct {
	seconds *prometheus.HistogramVec // by kind
	errors  *prometheus.CounterVec   // by kind
}

func newDatabaseMetrics(reg prometheus.Registerer) *databaseMetrics {
	m := &databaseMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "courier_store_statement_seconds", Help: "Time of statements that succeeded, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.5e-3, 3, 11)}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_statement_errors_total", Help: "Statements that failed, by kind."}, []string{"kind"}),
	}
	register(reg, m.seconds, m.errors)
	return m
}

// observe counts one statement. What was cancelled from outside is no error.
func (m *databaseMetrics) observe(statement string, took time.Duration, err error) {
	kind, _, _ := strings.Cut(statement, " ")
	switch {
	case err == nil:
		m.seconds.WithLabelValues(kind).Observe(took.Seconds())
	case !errors.Is(err, context.Canceled):
		m.errors.WithLabelValues(kind).Inc()
	}
}

// storeMetrics show the way of the log into the tables.
type storeMetrics struct {
	rows     *prometheus.CounterVec // by table
	copies   *prometheus.CounterVec // by table
	restored *prometheus.CounterVec // by table
	batches  *prometheus.CounterVec // by stream
	errors   *prometheus.CounterVec // by stream
	last     *prometheus.GaugeVec   // by stream

	mu     sync.Mutex
	oldest map[string]time.Time // by stream: when the oldest event in hand was stored in the log
}

func newStoreMetrics(reg prometheus.Registerer, streams []string) *storeMetrics {
	m := &storeMetrics{
		rows:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_rows_total", Help: "Rows inserted, by table."}, []string{"table"}),
		copies:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_copies_total", Help: "Events dropped because their event_id is in the table already."}, []string{"table"}),
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_restored_rows_total", Help: "Rows that ClickHouse lost when it was killed, brought in again."}, []string{"table"}),
		batches:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_batches_total", Help: "Batches that are in their tables."}, []string{"stream"}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_batch_errors_total", Help: "Attempts to write a batch that failed."}, []string{"stream"}),
		last:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "courier_store_last_batch_timestamp_seconds", Help: "When the last batch was written, seconds since 1970."}, []string{"stream"}),
		oldest:   make(map[string]time.Time),
	}
	register(reg, m.rows, m.copies, m.restored, m.batches, m.errors, m.last)
	for _, stream := range streams {
		register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "courier_store_oldest_unacked_seconds", ConstLabels: prometheus.Labels{"stream": stream},
			Help: "Age of the oldest event in hand that is not in its table yet, 0 if none is."}, func() float64 { return m.age(stream, time.Now()).Seconds() }))
	}
	return m
}

// begin notes the oldest event of a batch in hand.
func (m *storeMetrics) begin(stream string, oldest time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.oldest[stream] = oldest
}

// end counts one attempt at a batch.
func (m *storeMetrics) end(stream string, now time.Time, err error) {
	if err != nil {
		m.errors.WithLabelValues(stream).Inc()
		return
	}
	m.batches.WithLabelValues(stream).Inc()
	m.last.WithLabelValues(stream).Set(float64(now.UnixMilli()) / 1e3)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.oldest, stream)
}

// age returns how long the oldest event in hand has waited.
func (m *storeMetrics) age(stream string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest, waiting := m.oldest[stream]
	if !waiting {
		return 0
	}
	return max(0, now.Sub(oldest))
}

// register adds collectors to a registry, if there is one.
func register(reg prometheus.Registerer, all ...prometheus.Collector) {
	if reg != nil {
		reg.MustRegister(all...)
	}
}
