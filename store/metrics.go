package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"courier/bus"
	"courier/schemas"
)

// databaseMetrics count and measure the statements of a database.
type databaseMetrics struct {
	seconds  *prometheus.HistogramVec // by kind
	errors   *prometheus.CounterVec   // by kind
	reloaded *prometheus.CounterVec   // by table
}

func newDatabaseMetrics(reg prometheus.Registerer) *databaseMetrics {
	m := &databaseMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_store_statement_seconds",
			Help:    "Duration of successful statements, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.5e-3, 3, 11),
		}, []string{"kind"}),
		errors: counter("courier_store_statement_errors_total",
			"Failed statements, by kind.", "kind"),
		reloaded: counter("courier_store_reloaded_tables_total",
			"Tables that were reloaded because ClickHouse could not read a part of them, as "+
				"after a full disk.", "table"),
	}
	register(reg, m.seconds, m.errors, m.reloaded)
	return m
}

// observe counts a statement. A cancelled statement is not an error.
func (m *databaseMetrics) observe(statement string, duration time.Duration, err error) {
	kind, _, _ := strings.Cut(statement, " ")
	switch {
	case err == nil:
		m.seconds.WithLabelValues(kind).Observe(duration.Seconds())
	case !errors.Is(err, context.Canceled):
		m.errors.WithLabelValues(kind).Inc()
	}
}

// storeMetrics show the progress of the tables.
type storeMetrics struct {
	rows       *prometheus.CounterVec   // by table
	duplicates *prometheus.CounterVec   // by table
	restored   *prometheus.CounterVec   // by table
	batches    *prometheus.CounterVec   // by stream
	errors     *prometheus.CounterVec   // by stream
	last       *prometheus.GaugeVec     // by stream
	size       *prometheus.HistogramVec // rows of batches, by stream
	bytes      *prometheus.CounterVec   // by stream
	isWriter   *prometheus.GaugeVec     // by stream
	clocks     clockSkew

	mu      sync.Mutex
	oldest  map[string]time.Time   // by stream: when the log stored the oldest event of the batch
	backlog map[string]bus.Backlog // by stream: messages that are not in the tables
}

func newStoreMetrics(reg prometheus.Registerer, streams []string) *storeMetrics {
	m := &storeMetrics{
		rows: counter("courier_store_rows_total", "Rows inserted, by table.", "table"),
		duplicates: counter("courier_store_duplicate_events_total",
			"Events dropped because their event_id was in the table already.", "table"),
		restored: counter("courier_store_restored_rows_total",
			"Rows that ClickHouse lost when it crashed, and that were restored.", "table"),
		batches: counter("courier_store_batches_total", "Batches written.", "stream"),
		errors: counter("courier_store_batch_errors_total",
			"Failed attempts to write a batch.", "stream"),
		last: gauge("courier_store_last_batch_timestamp_seconds",
			"Unix time at which the last batch was written.", "stream"),
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_store_batch_rows",
			Help:    "Events per written batch.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}, []string{"stream"}),
		bytes: counter("courier_store_batch_bytes_total",
			"Size in the log of the written batches.", "stream"),
		isWriter: gauge("courier_store_is_writer",
			"1 while this store writes the tables of the stream, 0 while it is a standby.",
			"stream"),
		oldest:  make(map[string]time.Time),
		backlog: make(map[string]bus.Backlog),
	}
	register(reg, m.rows, m.duplicates, m.restored, m.batches, m.errors, m.last, m.size, m.bytes,
		m.isWriter)
	m.registerClocks(reg)
	for _, stream := range streams {
		m.registerLag(reg, stream)
	}
	return m
}

// registerClocks adds the gauges of the nodes' clocks.
func (m *storeMetrics) registerClocks(reg prometheus.Registerer) {
	ahead := prometheus.GaugeOpts{
		Name: "courier_store_clock_ahead_seconds",
		Help: "How far the clock of any node is ahead of the log's clock; 0 if none is.",
	}
	behind := prometheus.GaugeOpts{
		Name: "courier_store_clock_behind_seconds",
		Help: "How far the newest samples of any node are behind the log's clock, including " +
			"the delay of their delivery. Old samples from a spool alone count too.",
	}
	register(reg,
		prometheus.NewGaugeFunc(ahead, func() float64 {
			ahead, _ := m.clocks.skew(time.Now())
			return ahead.Seconds()
		}),
		prometheus.NewGaugeFunc(behind, func() float64 {
			_, behind := m.clocks.skew(time.Now())
			return behind.Seconds()
		}))
}

// registerLag adds the gauges of one stream's lag.
func (m *storeMetrics) registerLag(reg prometheus.Registerer, stream string) {
	labels := prometheus.Labels{"stream": stream}
	messages := prometheus.GaugeOpts{
		Name:        "courier_store_lag_messages",
		Help:        "Messages of the log that are not in the tables yet.",
		ConstLabels: labels,
	}
	age := prometheus.GaugeOpts{
		Name: "courier_store_lag_seconds",
		Help: "Age of the oldest event of the log that is not in the tables yet, 0 if all " +
			"are. It keeps growing while the log is unreachable.",
		ConstLabels: labels,
	}
	unacked := prometheus.GaugeOpts{
		Name: "courier_store_oldest_unacked_seconds",
		Help: "Age of the oldest event of the current batch that is not in its table yet, 0 " +
			"if there is none.",
		ConstLabels: labels,
	}
	register(reg,
		prometheus.NewGaugeFunc(messages, func() float64 {
			messages, _ := m.lag(stream, time.Now())
			return float64(messages)
		}),
		prometheus.NewGaugeFunc(age, func() float64 {
			_, age := m.lag(stream, time.Now())
			return age.Seconds()
		}),
		prometheus.NewGaugeFunc(unacked, func() float64 {
			return m.batchAge(stream, time.Now()).Seconds()
		}))
}

// startBatch records the oldest event of the current batch.
func (m *storeMetrics) startBatch(stream string, oldest time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.oldest[stream] = oldest
}

// finishAttempt counts an attempt to write a batch.
func (m *storeMetrics) finishAttempt(b bus.Batch, now time.Time, err error) {
	stream := b.Stream
	if err != nil {
		m.errors.WithLabelValues(stream).Inc()
		return
	}
	m.size.WithLabelValues(stream).Observe(float64(len(b.Records)))
	m.bytes.WithLabelValues(stream).Add(float64(b.Bytes))
	m.clocks.add(b.Records, now)
	m.batches.WithLabelValues(stream).Inc()
	m.last.WithLabelValues(stream).Set(float64(now.UnixMilli()) / 1e3)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.oldest, stream)
}

// batchAge returns the age of the oldest event of the current batch.
func (m *storeMetrics) batchAge(stream string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest, ok := m.oldest[stream]
	if !ok {
		return 0
	}
	return max(0, now.Sub(oldest))
}

// setBacklog records the backlog of a stream.
func (m *storeMetrics) setBacklog(stream string, b bus.Backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backlog[stream] = b
}

// lag returns the recorded backlog, and the age of its oldest message at now.
func (m *storeMetrics) lag(stream string, now time.Time) (messages uint64, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.backlog[stream]
	if b.Oldest.IsZero() {
		return b.Messages, 0
	}
	return b.Messages, max(0, now.Sub(b.Oldest))
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// register adds collectors to a registry, if there is one.
func register(reg prometheus.Registerer, all ...prometheus.Collector) {
	if reg != nil {
		reg.MustRegister(all...)
	}
}

// clockWindow is the minimum time for which the smallest delay of a node counts.
const clockWindow = 5 * time.Minute

// clockSkew compares the clocks of nodes with the log's. The delay between a sample's timestamp
// and its arrival in the log is the difference of the clocks plus the delivery, which takes long
// for samples from a spool. The smallest delay of a window is therefore close to the difference
// of the clocks. A negative delay shows a clock that is ahead.
//
// The zero value is ready to use. Its size grows with the number of nodes.
type clockSkew struct {
	mu                sync.Mutex
	since             time.Time                // start of the window
	current, previous map[string]time.Duration // smallest delay of the window, by node
}

// add adds the samples of a batch that was written at now.
func (c *clockSkew) add(records []bus.Record, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	for i := range records {
		s, ok := records[i].Event.(*schemas.Sample)
		if !ok {
			continue
		}
		delay := records[i].StoredAt.Sub(s.At)
		if smallest, ok := c.current[s.Node]; !ok || delay < smallest {
			c.current[s.Node] = delay
		}
	}
}

// advance starts a new window if the current one has ended.
func (c *clockSkew) advance(now time.Time) {
	age := now.Sub(c.since)
	if age < clockWindow {
		return
	}
	c.previous, c.current, c.since = c.current, make(map[string]time.Duration), now
	if age >= 2*clockWindow {
		c.previous = nil // older than the previous window
	}
}

// skew returns how far any node is ahead of the log's clock, and how far any node is behind it.
// Both are at least 0.
func (c *clockSkew) skew(now time.Time) (ahead, behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	for node, delay := range c.current {
		if previous, ok := c.previous[node]; ok {
			delay = min(delay, previous)
		}
		ahead, behind = max(ahead, -delay), max(behind, delay)
	}
	for node, delay := range c.previous {
		if _, ok := c.current[node]; !ok {
			ahead, behind = max(ahead, -delay), max(behind, delay)
		}
	}
	return ahead, behind
}
