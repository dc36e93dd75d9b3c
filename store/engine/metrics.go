package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	up       prometheus.Gauge
	restarts prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		up: f.NewGauge(prometheus.GaugeOpts{
			Name: "courier_engine_up",
			Help: "1 while the ClickHouse engine answers, otherwise 0.",
		}),
		restarts: f.NewCounter(prometheus.CounterOpts{
			Name: "courier_engine_restarts_total",
			Help: "Restarts of the engine after a crash or a failed start.",
		}),
	}
}
