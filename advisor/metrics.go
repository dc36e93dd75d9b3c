package advisor

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	advice      *prometheus.CounterVec
	risks       *prometheus.CounterVec
	promises    *prometheus.CounterVec
	calibration *prometheus.CounterVec
	admissions  *prometheus.CounterVec
	running     prometheus.Gauge
	queued      prometheus.Gauge
	lost        prometheus.Counter
	forbidden   prometheus.Counter
	regressors  *prometheus.CounterVec
	loaded      *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		advice:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_advice_total", Help: "Advice given, by decision."}, []string{"decision"}),
		risks:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_risks_total", Help: "Warnings and all-clears, by cause."}, []string{"cause", "cleared"}),
		promises:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_promises_total", Help: "Promises of the log whose jobs ran as advised and ended by themselves, by the confidence asked for, to two digits, and whether they were kept."}, []string{"confidence", "kept"}),
		calibration: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_calibration_total", Help: "Submissions of the log whose jobs ran as advised and ended by themselves, by the least probability of the range that was said of them, and whether they kept their SLO."}, []string{"from_probability", "kept"}),
		admissions:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_admissions_total", Help: "What the admission policy said, by policy and verdict."}, []string{"policy", "verdict"}),
		queued:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "courier_advisor_queued_jobs", Help: "Jobs that wait to be admitted."}),
		running:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "courier_advisor_running_jobs", Help: "Jobs that run now."}),
		lost:        prometheus.NewCounter(prometheus.CounterOpts{Name: "courier_advisor_lost_jobs_total", Help: "Jobs recorded as lost."}),
		forbidden:   prometheus.NewCounter(prometheus.CounterOpts{Name: "courier_advisor_forbidden_total", Help: "What persons asked or told of the jobs of others."}),
		regressors:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "courier_advisor_loaded_regressors_total", Help: "Regressors taken into use or refused, by target and outcome."}, []string{"target", "outcome"}),
		loaded:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "courier_advisor_regressor_examples", Help: "Examples of the regressor in use, by target."}, []string{"target"}),
	}
	if reg != nil {
		reg.MustRegister(m.advice, m.risks, m.promises, m.calibration, m.admissions, m.running, m.queued, m.lost, m.forbidden, m.regressors, m.loaded)
	}
	return m
}
