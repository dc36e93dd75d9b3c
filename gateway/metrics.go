package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a gateway.
type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route, without live connections
	events   *prometheus.CounterVec   // by kind
	clients  prometheus.Gauge
	slow     prometheus.Counter
	missed   *prometheus.CounterVec // by reason

	nodes        prometheus.Gauge
	nodesEvicted prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_requests_total",
			Help: "HTTP responses by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_gateway_request_seconds",
			Help:    "Duration of HTTP requests by route, without live connections.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 3, 10),
		}, []string{"route"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_events_total",
			Help: "Events sent to live clients, by kind.",
		}, []string{"kind"}),
		clients: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_gateway_live_clients",
			Help: "Connected live clients.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_gateway_slow_clients_total",
			Help: "Live clients disconnected because of a write timeout.",
		}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_missed_events_total",
			Help: "Events reported to live clients as missed, by reason.",
		}, []string{"reason"}),
		nodes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_gateway_nodes",
			Help: "Nodes in memory.",
		}),
		nodesEvicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_gateway_nodes_evicted_total",
			Help: "Nodes evicted from memory because their maximum number was reached.",
		}),
	}
	for _, reason := range []string{missedSlow, missedOld, missedReset, missedUnavailable} {
		m.missed.WithLabelValues(reason) // so that Prometheus sees the first increase
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.seconds, m.events, m.clients, m.slow, m.missed, m.nodes,
			m.nodesEvicted)
	}
	return m
}
