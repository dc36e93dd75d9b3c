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
	panics      prometheus.Counter
	replaced    prometheus.Counter
	dropped     prometheus.Counter
	unpublished prometheus.Counter
	snapshots   *prometheus.CounterVec
	savedAt     prometheus.Gauge
	savedBytes  prometheus.Gauge
	headroom    prometheus.Gauge
	neededBytes prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		advice: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_advice_total",
			Help: "Advice given, by decision.",
		}, []string{"decision"}),
		risks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_risks_total",
			Help: "Warnings and all-clears, by cause.",
		}, []string{"cause", "cleared"}),
		promises: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_promises_total",
			Help: "Promises of the log whose jobs ran as advised and ended by themselves, by the confidence asked for, to two digits, and whether they were kept.",
		}, []string{"confidence", "kept"}),
		calibration: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_calibration_total",
			Help: "Submissions of the log whose jobs ran as advised and ended by themselves, by the least probability of the range that was said of them, and whether they kept their SLO.",
		}, []string{"from_probability", "kept"}),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_admissions_total",
			Help: "What the admission policy said, by policy and verdict.",
		}, []string{"policy", "verdict"}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_advisor_queued_jobs",
			Help: "Jobs that wait to be admitted.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "courier_advisor_running_jobs",
			Help: "Jobs that run now.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_advisor_lost_jobs_total",
			Help: "Jobs recorded as lost.",
		}),
		forbidden: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "courier_advisor_forbidden_total",
			Help: "What persons asked or told of the jobs of others.",
		}),
		regressors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "courier_advisor_loaded_regressors_total",
			Help: "Regressors taken into use or refused, by target and outcome.",
		}, []string{"target", "outcome"}),
		loaded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_advisor_regressor_examples",
			Help: "Examples of the regressor in use, by target.",
		}, []string{"target"}),
	}
	m.panics = counter("courier_advisor_event_panics_total",
		"Events that were skipped because their handler panicked.")
	m.replaced = counter("courier_advisor_replaced_advice_total",
		"Advice that a newer one of the same job replaced before it was published.")
	m.dropped = counter("courier_advisor_dropped_advice_total",
		"Advice that was dropped because too many waited to be published.")
	m.unpublished = counter("courier_advisor_failed_publishes_total",
		"Attempts to publish advice or a warning that failed.")
	m.snapshots = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "courier_advisor_snapshots_total",
		Help: "Snapshots of the state, by outcome: written, failed, loaded or ignored.",
	}, []string{"outcome"})
	m.savedAt = gauge("courier_advisor_snapshot_time_seconds",
		"Unix time of the last snapshot that this advisor wrote, loaded or found.")
	m.savedBytes = gauge("courier_advisor_snapshot_bytes",
		"Size of the last snapshot that this advisor wrote or loaded.")
	m.headroom = gauge("courier_advisor_job_log_headroom_ratio",
		"Share of the limits of the JOB stream that is left before the first event of the "+
			"oldest running job is dropped; 1 if no job runs, 0 if it is dropped already.")
	m.neededBytes = gauge("courier_advisor_job_log_needed_bytes",
		"Size that the JOB stream needs to keep the events of all running jobs.")
	if reg != nil {
		reg.MustRegister(m.advice, m.risks, m.promises, m.calibration, m.admissions, m.running,
			m.queued, m.lost, m.forbidden, m.regressors, m.loaded, m.panics, m.replaced,
			m.dropped, m.unpublished, m.snapshots, m.savedAt, m.savedBytes, m.headroom,
			m.neededBytes)
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
