package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route; without live connections
	events   *prometheus.CounterVec   // by kind
	clients  prometheus.Gauge
	slow     prometheus.Counter
	missed   *prometheus.CounterVec // by reason

	nodes        prometheus.Gauge
	nodesEvicted prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_requests_total",
			Help: "HTTP requests answered, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_gateway_request_seconds",
			Help:    "Time to answer an HTTP request, by route, without live connections.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 3, 10),
		}, []string{"route"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_events_total",
			Help: "Events announced to live clients, by kind.",
		}, []string{"kind"}),
		clients: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_gateway_live_clients",
			Help: "Live clients that are connected.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_gateway_slow_clients_total",
			Help: "Live clients disconnected because they did not read.",
		}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_gateway_missed_events_total",
			Help: "Events that live clients did not get and were told of, by reason.",
		}, []string{"reason"}),
		nodes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_gateway_nodes",
			Help: "Nodes that are remembered.",
		}),
		nodesEvicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_gateway_nodes_evicted_total",
			Help: "Nodes forgotten because more reported than are remembered.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.seconds, m.events, m.clients, m.slow, m.missed, m.nodes, m.nodesEvicted,
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
