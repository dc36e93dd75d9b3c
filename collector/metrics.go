package collector

import (
	"time"

	"courier/spool"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	failedReadings prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, o *spool.Outbox) *metrics {
	factory := promauto.With(reg)
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "courier_collector_published_samples_total",
		Help: "Node samples that were published and acknowledged.",
	}, func() float64 { return float64(o.Published()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "courier_collector_dropped_samples_total",
		Help: "Node samples that were dropped because the spool was full or they were invalid.",
	}, func() float64 { return float64(o.Lost()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "courier_collector_waiting_age_seconds",
		Help: "Age of the oldest node sample that waits to be published; 0 if none waits.",
	}, func() float64 { return ageSince(o.WaitingSince()) })
	return &metrics{
		failedReadings: factory.NewCounter(prometheus.CounterOpts{
			Name: "courier_collector_failed_readings_total",
			Help: "Failed readings of the node's counters.",
		}),
	}
}

func ageSince(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, time.Since(at).Seconds()) // the wall clock can be set back
}
