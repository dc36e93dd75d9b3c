package bus

import (
	"encoding/json"
	"errors"

	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	published *prometheus.CounterVec // by subjectKind and outcome
	consumed  *prometheus.CounterVec // by stream
	dead      *prometheus.CounterVec // by stream and reason
	repeated  *prometheus.CounterVec // by stream
	requests  *prometheus.HistogramVec
	panics    *prometheus.CounterVec // by subject of the endpoint
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		published: counter("courier_bus_published_messages_total",
			"Published events, by kind and outcome.", "kind", "outcome"),
		consumed: counter("courier_bus_consumed_messages_total", "Events read from a stream.", "stream"),
		dead: counter("courier_bus_dead_messages_total",
			"Messages that could not be decoded, by reason: size, json, value (type or range "+
				"of a field) or subject.", "stream", "reason"),
		repeated: counter("courier_bus_repeated_batches_total",
			"Batches that were handled again after a failure.", "stream"),
		requests: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_bus_request_seconds",
			Help:    "Time to answer a request, by subject and outcome.",
			Buckets: prometheus.ExponentialBuckets(20e-6, 3, 12),
		}, []string{"subject", "code"}),
		panics: counter("courier_bus_handler_panics_total",
			"Requests whose handler panicked, by subject of the endpoint.", "subject"),
	}
	// Prometheus cannot see the first increase of a counter that does not exist before.
	for _, stream := range schemas.Streams() {
		m.repeated.WithLabelValues(stream.Name)
		for _, reason := range []string{"size", "json", "value", "subject"} {
			m.dead.WithLabelValues(stream.Name, reason)
		}
	}
	return m
}

// countPublished also creates the counter of failures, with the first event of its kind.
func (m *metrics) countPublished(subject string, err error) {
	kind := subjectKind(subject)
	failures := m.published.WithLabelValues(kind, "error")
	if err != nil {
		failures.Inc()
		return
	}
	m.published.WithLabelValues(kind, "ok").Inc()
}

func reasonLabel(data []byte, reason error) string {
	var e *schemas.Error
	switch {
	case len(data) > schemas.MaxMessageBytes:
		return "size"
	case !json.Valid(data):
		return "json"
	case errors.As(reason, &e) && e.Field != "":
		return "value"
	}
	return "subject"
}
