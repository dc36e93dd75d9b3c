package advisor

import (
	"strconv"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of an advisor.
type metrics struct {
	advice      *prometheus.CounterVec // by decision
	risks       *prometheus.CounterVec // by cause and cleared
	promises    *prometheus.CounterVec // by confidence and kept
	calibration *prometheus.CounterVec // by from_probability and kept
	admissions  *prometheus.CounterVec // by policy and verdict
	running     prometheus.Gauge
	queued      prometheus.Gauge
	atRisk      prometheus.Gauge
	queueAge    prometheus.Gauge
	lost        prometheus.Counter
	forbidden   prometheus.Counter
	regressors  *prometheus.CounterVec // by target and outcome
	loaded      *prometheus.GaugeVec   // by target
	panics      prometheus.Counter

	replaced    prometheus.Counter
	dropped     prometheus.Counter
	unpublished prometheus.Counter

	snapshots  *prometheus.CounterVec // by outcome
	savedAt    prometheus.Gauge
	savedBytes prometheus.Gauge
}

// registry creates the metrics of the package. It registers them unless its registerer is nil.
type registry struct{ promauto.Factory }

func (r registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (r registry) gauge(name, help string) prometheus.Gauge {
	return r.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// newMetrics creates the metrics and registers them, unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	r := registry{promauto.With(reg)}
	m := &metrics{
		advice: r.counter("courier_advisor_advice_total", "Advice given, by decision.", "decision"),
		risks: r.counter("courier_advisor_risks_total",
			"Warnings and all-clears, by cause.", "cause", "cleared"),
		promises: r.counter("courier_advisor_promises_total",
			"Promises whose jobs ran as advised and finished or failed, by confidence (rounded "+
				"to two digits) and whether the SLO was met.", "confidence", "kept"),
		calibration: r.counter("courier_advisor_calibration_total",
			"Submissions whose jobs ran as advised and finished or failed, by the lower end of "+
				"the range of the predicted probability and whether the SLO was met.", "from_probability", "kept"),
		admissions: r.counter("courier_advisor_admissions_total",
			"Verdicts of the admission policy, by policy and verdict.", "policy", "verdict"),
		running: r.gauge("courier_advisor_running_jobs", "Running jobs."),
		queued:  r.gauge("courier_advisor_queued_jobs", "Queued jobs."),
		atRisk: r.gauge("courier_advisor_jobs_at_risk",
			"Running jobs whose probability is below their confidence."),
		queueAge: r.gauge("courier_advisor_queue_age_seconds",
			"Time since the submission of the job that has waited longest; 0 if none waits."),
		lost: r.counter("courier_advisor_lost_jobs_total", "Jobs recorded as lost.").WithLabelValues(),
		forbidden: r.counter("courier_advisor_forbidden_total",
			"Requests and events refused because the person does not own the job.").WithLabelValues(),
		regressors: r.counter("courier_advisor_loaded_regressors_total",
			"Regressors loaded or refused, by target and outcome.", "target", "outcome"),
		loaded: r.NewGaugeVec(prometheus.GaugeOpts{
			Name: "courier_advisor_regressor_examples",
			Help: "Examples of the regressor in use, by target.",
		}, []string{"target"}),
		panics: r.counter("courier_advisor_event_panics_total",
			"Events skipped because their handler panicked.").WithLabelValues(),
	}

	m.addOperation(r)
	m.beginAtZero()
	return m
}

// addOperation adds the metrics of the outbox and of snapshots.
func (m *metrics) addOperation(r registry) {
	m.replaced = r.counter("courier_advisor_replaced_advice_total",
		"Advice replaced by newer advice for the same job before it was published.").WithLabelValues()
	m.dropped = r.counter("courier_advisor_dropped_advice_total",
		"Advice dropped because too much of it was unpublished.").WithLabelValues()
	m.unpublished = r.counter("courier_advisor_failed_publishes_total",
		"Failed attempts to publish advice or a warning.").WithLabelValues()

	m.snapshots = r.counter("courier_advisor_snapshots_total",
		"Snapshots of the state, by outcome: written, failed, loaded or ignored.", "outcome")
	m.savedAt = r.gauge("courier_advisor_snapshot_time_seconds",
		"Unix time of the last snapshot that this advisor wrote or loaded.")
	m.savedBytes = r.gauge("courier_advisor_snapshot_bytes",
		"Size of the last snapshot that this advisor wrote or loaded.")
}

// beginAtZero creates the counters of known labels. Prometheus cannot see the first increase of a counter
// that does not exist before.
func (m *metrics) beginAtZero() {
	for _, cause := range schemas.Causes() {
		for _, cleared := range []string{"false", "true"} {
			m.risks.WithLabelValues(cause, cleared)
		}
	}
	for _, kept := range []string{"false", "true"} {
		m.promises.WithLabelValues(strconv.FormatFloat(schemas.DefaultConfidence, 'f', 2, 64), kept)
	}
	for _, outcome := range []string{"written", "failed", "loaded", "ignored"} {
		m.snapshots.WithLabelValues(outcome)
	}
	for _, target := range schemas.Targets() {
		for _, outcome := range []string{"loaded", "refused"} {
			m.regressors.WithLabelValues(target, outcome)
		}
	}
}

// observe sets the metrics that change without an event.
func (m *metrics) observe(c *cluster.Cluster, now time.Time) {
	atRisk := 0
	for j := range c.Running() {
		if j.IsAtRisk() {
			atRisk++
		}
	}
	m.atRisk.Set(float64(atRisk))
	oldest := now
	for _, j := range c.Queue() {
		if j.SubmittedAt.Before(oldest) {
			oldest = j.SubmittedAt
		}
	}
	m.queueAge.Set(now.Sub(oldest).Seconds())
}

// countOutcome counts the outcome of a submission.
func (m *metrics) countOutcome(j *cluster.Job) {
	isKept, ok := j.Outcome()
	if !ok {
		return
	}
	kept := strconv.FormatBool(isKept)
	if p := j.Promise.Probability; p != nil {
		m.calibration.WithLabelValues(strconv.FormatFloat(schemas.CalibrationFrom(*p), 'f',
			2, 64), kept).Inc()
	}
	if j.Promise.Decision == schemas.MeetsSLO {
		m.promises.WithLabelValues(strconv.FormatFloat(j.Request.Confidence, 'f',
			2, 64), kept).Inc()
	}
}
