package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what the supervisor shows of itself.
type metrics struct {
	up       prometheus.Gauge
	restarts prometheus.Counter
	start    prometheus.Gauge
}

// newMetrics registers with reg; nil means that nobody looks.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		up: f.NewGauge(prometheus.GaugeOpts{
			Name: "courier_engine_up",
			Help: "1 while the ClickHouse engine answers, else 0.",
		}),
		restarts: f.NewCounter(prometheus.CounterOpts{
			Name: "courier_engine_restarts_total",
			Help: "How often the engine was started again after it had ended unasked or did not start.",
		}),
		start: f.NewGauge(prometheus.GaugeOpts{
			Name: "courier_engine_start_seconds",
			Help: "How long the last start took, from the process to the first answer.",
		}),
	}
}
