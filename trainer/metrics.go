package trainer

import (
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the Prometheus metrics of a trainer.
type metrics struct {
	fits       *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	examples   *prometheus.GaugeVec
	skipped    *prometheus.GaugeVec
	drifts     prometheus.Counter
	promotions *prometheus.CounterVec
	newEpochs  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	m := &metrics{
		fits: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_trainer_fits_total",
			Help: "Fits, by target and outcome.",
		}, []string{"target", "outcome"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_trainer_fit_seconds",
			Help:    "Duration of a fit, by target.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 10),
		}, []string{"target"}),
		examples: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_trainer_examples",
			Help: "Examples of the last fit, by target.",
		}, []string{"target"}),
		skipped: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_trainer_refused_examples",
			Help: "Events and examples skipped at the last fit, by reason.",
		}, []string{"reason"}),
		promotions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_trainer_promotions_total",
			Help: "Promoted regressors, by target and by what decided.",
		}, []string{"target", "decided_by"}),
		drifts: factory.NewCounter(prometheus.CounterOpts{
			Name: "courier_trainer_drifts_total",
			Help: "Drift corrections that began or changed.",
		}),
		newEpochs: factory.NewGauge(prometheus.GaugeOpts{
			Name: "courier_trainer_new_epochs",
			Help: "Epochs since the last fit.",
		}),
	}
	// Prometheus cannot see the first increase of a counter that does not exist before.
	for _, target := range schemas.Targets() {
		m.fits.WithLabelValues(target, "error")
	}
	return m
}
