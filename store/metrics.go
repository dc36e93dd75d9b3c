package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"courier/bus"
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
	return m
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
