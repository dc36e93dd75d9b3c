package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"courier/bus"
	"courier/schemas"
)

// registry creates metrics. It registers them unless its registerer is nil.
type registry struct{ promauto.Factory }

func (r registry) counter(name, help, label string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func (r registry) gauge(name, help, label string) *prometheus.GaugeVec {
	return r.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
}

type databaseMetrics struct {
	seconds  *prometheus.HistogramVec // by kind
	errors   *prometheus.CounterVec   // by kind
	reloaded *prometheus.CounterVec   // by table
}

func newDatabaseMetrics(reg prometheus.Registerer) *databaseMetrics {
	r := registry{promauto.With(reg)}
	return &databaseMetrics{
		seconds: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_store_statement_seconds",
			Help:    "Duration of successful statements, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.5e-3, 3, 11),
		}, []string{"kind"}),
		errors: r.counter("courier_store_statement_errors_total", "Failed statements, by kind.", "kind"),
		reloaded: r.counter("courier_store_reloaded_tables_total",
			"Tables that were reloaded because ClickHouse could not read a part of them, as "+
				"after a full disk.", "table"),
	}
}

func (m *databaseMetrics) observe(statement string, duration time.Duration, err error) {
	kind, _, _ := strings.Cut(statement, " ")
	switch {
	case err == nil:
		m.seconds.WithLabelValues(kind).Observe(duration.Seconds())
	case !errors.Is(err, context.Canceled):
		m.errors.WithLabelValues(kind).Inc()
	}
}

type storeMetrics struct {
	rows       *prometheus.CounterVec // by table
	duplicates *prometheus.CounterVec // by table
	restored   *prometheus.CounterVec // by table
	errors     *prometheus.CounterVec // by stream
	isWriter   *prometheus.GaugeVec   // by stream
	lag        *prometheus.GaugeVec   // messages, by stream
	age        *prometheus.GaugeVec   // by stream
	clocks     clockSkew
}

func newStoreMetrics(reg prometheus.Registerer, streams []string) *storeMetrics {
	r := registry{promauto.With(reg)}
	m := &storeMetrics{
		rows: r.counter("courier_store_rows_total", "Rows inserted, by table.", "table"),
		duplicates: r.counter("courier_store_duplicate_events_total",
			"Events dropped because their event_id was in the table already.", "table"),
		restored: r.counter("courier_store_restored_rows_total",
			"Rows that ClickHouse lost when it crashed, and that were restored.", "table"),
		errors: r.counter("courier_store_batch_errors_total", "Failed attempts to write a batch.", "stream"),
		isWriter: r.gauge("courier_store_is_writer",
			"1 while this store writes the tables of the stream, 0 while it is a standby.",
			"stream"),
		lag: r.gauge("courier_store_lag_messages",
			"Messages of the log that are not in the tables yet.", "stream"),
		age: r.gauge("courier_store_lag_seconds",
			"Age of the oldest event of the log that is not in the tables yet, 0 if all are. It "+
				"keeps growing while the log is unreachable.", "stream"),
	}
	for _, stream := range streams {
		m.lag.WithLabelValues(stream)
		m.age.WithLabelValues(stream)
	}
	r.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "courier_store_clock_ahead_seconds",
		Help: "How far the clock of any node is ahead of the log's clock; 0 if none is.",
	}, func() float64 {
		ahead, _ := m.clocks.skew(time.Now())
		return ahead.Seconds()
	})
	r.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "courier_store_clock_behind_seconds",
		Help: "How far the newest samples of any node are behind the log's clock, including " +
			"the delay of their delivery. Old samples from a spool alone count too.",
	}, func() float64 {
		_, behind := m.clocks.skew(time.Now())
		return behind.Seconds()
	})
	return m
}

func (m *storeMetrics) finishAttempt(b bus.Batch, now time.Time, err error) {
	if err != nil {
		m.errors.WithLabelValues(b.Stream).Inc()
		return
	}
	m.clocks.add(b.Records, now)
}

// setLag sets the backlog of a stream, as it was read last, and the age of its oldest message at now.
func (m *storeMetrics) setLag(stream string, b bus.Backlog, now time.Time) {
	m.lag.WithLabelValues(stream).Set(float64(b.Messages))
	age := 0.0
	if !b.Oldest.IsZero() {
		age = max(0, now.Sub(b.Oldest).Seconds())
	}
	m.age.WithLabelValues(stream).Set(age)
}

// clockWindow is the time of which the smallest delay of a node counts. By default, it has 150 samples
// of each node.
const clockWindow = 5 * time.Minute

// clockSkew compares the clocks of nodes with the log's. The delay between a sample's timestamp
// and its arrival in the log is the difference of the clocks plus the delivery, which takes long
// for samples from a spool. The smallest delay of a window is therefore close to the difference
// of the clocks. A negative delay shows a clock that is ahead.
//
// The zero value is ready to use. Its size grows with the number of nodes.
type clockSkew struct {
	mu            sync.Mutex
	since         time.Time                // start of the window
	delays        map[string]time.Duration // smallest delay of the window, by node
	ahead, behind time.Duration            // in the previous window
}

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
		if smallest, ok := c.delays[s.Node]; !ok || delay < smallest {
			c.delays[s.Node] = delay
		}
	}
}

func (c *clockSkew) advance(now time.Time) {
	if now.Sub(c.since) < clockWindow {
		return
	}
	c.ahead, c.behind = 0, 0
	for _, delay := range c.delays {
		c.ahead, c.behind = max(c.ahead, -delay), max(c.behind, delay)
	}
	c.delays, c.since = make(map[string]time.Duration), now
}

// skew returns how far any node was ahead of the log's clock in the previous window, and how far any
// node was behind it. Both are at least 0.
func (c *clockSkew) skew(now time.Time) (ahead, behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now)
	return c.ahead, c.behind
}
