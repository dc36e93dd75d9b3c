package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"courier/bus"

	"github.com/prometheus/client_golang/prometheus"
)

// databaseMetrics count statements, whoever asks for them.
type databaseMetrics struct {
	seconds  *prometheus.HistogramVec // by kind
	errors   *prometheus.CounterVec   // by kind
	reloaded *prometheus.CounterVec   // by table
}

func newDatabaseMetrics(reg prometheus.Registerer) *databaseMetrics {
	m := &databaseMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "courier_store_statement_seconds", Help: "Time of statements that succeeded, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.5e-3, 3, 11)}, []string{"kind"}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_statement_errors_total", Help: "Statements that failed, by kind."}, []string{"kind"}),
		reloaded: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_reloaded_tables_total", Help: "Tables that were loaded again because ClickHouse could not read a part of them, as after a full disk."}, []string{"table"}),
	}
	register(reg, m.seconds, m.errors, m.reloaded)
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
	rows     *prometheus.CounterVec   // by table
	copies   *prometheus.CounterVec   // by table
	restored *prometheus.CounterVec   // by table
	batches  *prometheus.CounterVec   // by stream
	errors   *prometheus.CounterVec   // by stream
	last     *prometheus.GaugeVec     // by stream
	size     *prometheus.HistogramVec // of batches in rows, by stream
	bytes    *prometheus.CounterVec   // by stream
	writes   *prometheus.GaugeVec     // by stream
	clocks   clocks

	mu     sync.Mutex
	oldest map[string]time.Time   // by stream: when the oldest event in hand was stored in the log
	behind map[string]bus.Backlog // by stream: what no table has
}

func newStoreMetrics(reg prometheus.Registerer, streams []string) *storeMetrics {
	m := &storeMetrics{
		rows:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_rows_total", Help: "Rows inserted, by table."}, []string{"table"}),
		copies:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_copies_total", Help: "Events dropped because their event_id is in the table already."}, []string{"table"}),
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_restored_rows_total", Help: "Rows that ClickHouse lost when it was killed, brought in again."}, []string{"table"}),
		batches:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_batches_total", Help: "Batches that are in their tables."}, []string{"stream"}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_batch_errors_total", Help: "Attempts to write a batch that failed."}, []string{"stream"}),
		last:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "courier_store_last_batch_timestamp_seconds", Help: "When the last batch was written, seconds since 1970."}, []string{"stream"}),
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "courier_store_batch_rows", Help: "Events in one batch that was written.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8)}, []string{"stream"}),
		bytes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_store_batch_bytes_total", Help: "Bytes, as the log has them, of the batches that were written."}, []string{"stream"}),
		writes: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "courier_store_writes", Help: "1 while this store writes the tables of the stream, 0 while it stands by for another."}, []string{"stream"}),
		oldest: make(map[string]time.Time),
		behind: make(map[string]bus.Backlog),
	}
	register(reg, m.rows, m.copies, m.restored, m.batches, m.errors, m.last, m.size, m.bytes, m.writes,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "courier_store_clock_ahead_seconds", Help: "How far the clock of the node that is furthest ahead is ahead of the log's; 0 if none is."},
			func() float64 { ahead, _ := m.clocks.skew(time.Now()); return ahead.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "courier_store_clock_behind_seconds", Help: "How far behind the log's clock the newest samples of the node are that is furthest behind, its way to the log included; a replay of old samples alone counts as well."},
			func() float64 { _, behind := m.clocks.skew(time.Now()); return behind.Seconds() }))
	for _, stream := range streams {
		labels := prometheus.Labels{"stream": stream}
		register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "courier_store_lag_messages", ConstLabels: labels, Help: "Messages of the log that are not in the tables yet."},
			func() float64 { messages, _ := m.lag(stream, time.Now()); return float64(messages) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "courier_store_lag_seconds", ConstLabels: labels, Help: "Age of the oldest event of the log that is not in the tables yet, 0 if all are. It grows on while the log cannot be asked."},
				func() float64 { _, age := m.lag(stream, time.Now()); return age.Seconds() }))
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
func (m *storeMetrics) end(b bus.Batch, now time.Time, err error) {
	stream := b.Stream
	if err != nil {
		m.errors.WithLabelValues(stream).Inc()
		return
	}
	m.size.WithLabelValues(stream).Observe(float64(len(b.Records)))
	m.bytes.WithLabelValues(stream).Add(float64(b.Bytes))
	m.clocks.note(b.Records, now)
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

// found notes a look at what a stream holds that the tables do not.
func (m *storeMetrics) found(stream string, b bus.Backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.behind[stream] = b
}

// lag returns what the last look found, and the age of that now.
func (m *storeMetrics) lag(stream string, now time.Time) (messages uint64, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.behind[stream]
	if b.Oldest.IsZero() {
		return b.Messages, 0
	}
	return b.Messages, max(0, now.Sub(b.Oldest))
}

// register adds collectors to a registry, if there is one.
func register(reg prometheus.Registerer, all ...prometheus.Collector) {
	if reg != nil {
		reg.MustRegister(all...)
	}
}
