package trainer

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	fits       *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	examples   *prometheus.GaugeVec
	refused    *prometheus.GaugeVec
	drifts     prometheus.Counter
	promotions *prometheus.CounterVec
	rulings    *prometheus.CounterVec
	waiting    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		fits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_trainer_fits_total",
			Help: "Fits, by target and outcome.",
		}, []string{"target", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "courier_trainer_fit_seconds",
			Help:    "Time of a fit, by target.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 10),
		}, []string{"target"}),
		examples: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_trainer_examples",
			Help: "Examples of the last fit, by target.",
		}, []string{"target"}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_trainer_refused_examples",
			Help: "Events that taught nothing at the last fit, by reason.",
		}, []string{"reason"}),
		promotions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_trainer_promotions_total",
			Help: "Regressors put in use, by target and by what decided.",
		}, []string{"target", "decided_by"}),
		rulings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_trainer_rulings_total",
			Help: "Trials of a rival against the champion that came to an end, by target and outcome.",
		}, []string{"target", "outcome"}),
		drifts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_trainer_drifts_total",
			Help: "Times when the last epochs no longer were as predicted.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_trainer_new_epochs",
			Help: "Epochs that came after the last fit.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.fits, m.seconds, m.examples, m.refused, m.drifts, m.promotions,
			m.rulings, m.waiting)
	}
	return m
}
