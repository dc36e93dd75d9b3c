package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route, without live connections
	events   *prometheus.CounterVec   // by kind
	clients  prometheus.Gauge
	slow     prometheus.Counter

	nodesEvicted prometheus.Counter

	notifications *prometheus.CounterVec // by result
}

func newMetrics(reg prometheus.Registerer, nodes *nodeTable) *metrics {
	factory := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		requests: counter("courier_gateway_requests_total",
			"HTTP responses by route and status.", "route", "status"),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_gateway_request_seconds",
			Help:    "Duration of HTTP requests by route, without live connections.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 3, 10),
		}, []string{"route"}),
		events:  counter("courier_gateway_events_total", "Events sent to live clients, by kind.", "kind"),
		clients: gauge("courier_gateway_live_clients", "Connected live clients."),
		slow: counter("courier_gateway_slow_clients_total",
			"Live clients disconnected because they read too slowly.").WithLabelValues(),
		nodesEvicted: counter("courier_gateway_nodes_evicted_total",
			"Nodes evicted from memory because their maximum number was reached.").WithLabelValues(),
		notifications: counter("courier_gateway_notifications_total",
			"Notifications by result: sent, failed or dropped because too many waited.", "result"),
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "courier_gateway_clock_ahead_seconds",
		Help: "How far the clock of any node is ahead of that of NATS; 0 if none is.",
	}, func() float64 {
		ahead, _ := nodes.skew(time.Now())
		return ahead.Seconds()
	})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "courier_gateway_clock_behind_seconds",
		Help: "How far the newest samples of any node are behind the clock of NATS, including " +
			"the delay of their delivery.",
	}, func() float64 {
		_, behind := nodes.skew(time.Now())
		return behind.Seconds()
	})
	for _, result := range []string{notifySent, notifyFailed, notifyDropped} {
		m.notifications.WithLabelValues(result) // so that Prometheus sees the first increase
	}
	return m
}
