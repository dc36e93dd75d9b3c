package bus

import (
	"encoding/json"
	"errors"
	"strings"

	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	published *prometheus.CounterVec // by stream-level kind and outcome
	consumed  *prometheus.CounterVec
	dead      *prometheus.CounterVec
	retried   *prometheus.CounterVec
	requests  *prometheus.HistogramVec
	panics    *prometheus.CounterVec // by subject of the endpoint
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_bus_published_messages_total", Help: "Events published, by kind and outcome."}, []string{"kind", "outcome"}),
		consumed:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_bus_consumed_messages_total", Help: "Events read from a stream."}, []string{"stream"}),
		dead:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_bus_dead_messages_total", Help: "Messages that could not be understood, by reason: size, json, value (a field's type or range) or subject."}, []string{"stream", "reason"}),
		retried:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_bus_repeated_batches_total", Help: "Batches that were handled again."}, []string{"stream"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "courier_bus_request_seconds", Help: "Time to answer a request, by subject and outcome.",
			Buckets: prometheus.ExponentialBuckets(20e-6, 3, 12)}, []string{"subject", "code"}),
	}
	m.panics = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "courier_bus_handler_panics_total",
		Help: "Requests whose handler panicked, by subject of the endpoint.",
	}, []string{"subject"})
	if reg != nil {
		for _, c := range []prometheus.Collector{m.published, m.consumed, m.dead, m.retried, m.requests, m.panics} {
			reg.MustRegister(c)
		}
	}
	return m
}

// reasonKind sorts what is wrong with a message into a label with a bound.
func reasonKind(data []byte, reason error) string {
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

// WithoutSecrets returns a list of addresses without users, passwords and tokens,
// also of addresses that cannot be read.
func WithoutSecrets(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		scheme, rest, found := strings.Cut(strings.TrimSpace(s), "://")
		if !found {
			scheme, rest = "", scheme
		} else {
			scheme += "://"
		}
		list[i] = scheme + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(list, ",")
}
