package collector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a Collector tells about itself.
type metrics struct {
	published prometheus.Counter
	dropped   prometheus.Counter
	failed    prometheus.Counter
	replayed  prometheus.Counter
	backlog   prometheus.Gauge
	oldest    prometheus.Gauge
	spool     prometheus.Gauge

	spoolFailures prometheus.Counter

	cpu      prometheus.Counter
	gather   prometheus.Histogram
	resident prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "courier_collector_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "courier_collector_" + name, Help: help})
	}
	m := &metrics{
		published: counter("published_samples_total", "Node samples that the event log took."),
		dropped:   counter("dropped_samples_total", "Node samples that were given up because too many waited, the oldest first, or one was refused."),
		failed:    counter("failed_readings_total", "Readings of the node's counters that failed."),
		replayed:  counter("replayed_events_total", "Job events published from the spool."),
		backlog:   gauge("waiting_samples", "Node samples that wait for the event log."),
		oldest:    gauge("waiting_age_seconds", "Age of the oldest node sample that waits; 0 if none does."),
		spool:     gauge("spool_bytes", "Node samples on disk that wait for the event log."),

		spoolFailures: counter("spool_failures_total", "Attempts to put node samples on disk that failed; they wait in memory then."),

		cpu:      counter("cpu_seconds_total", "CPU time of the process while it read the node's counters: an upper bound of their cost, because other work of the process meanwhile counts too."),
		resident: gauge("resident_bytes", "Resident memory of the collector's process."),
		gather: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "courier_collector_reading_seconds", Help: "Time to read the node's counters.",
			Buckets: prometheus.ExponentialBuckets(250e-6, 2, 12)}),
	}
	if reg != nil {
		reg.MustRegister(m.published, m.dropped, m.failed, m.replayed, m.backlog, m.oldest, m.spool, m.spoolFailures, m.cpu, m.gather, m.resident)
	}
	return m
}

// cost counts what one reading took.
func (m *metrics) cost(cpu, elapsed time.Duration, resident float64) {
	m.cpu.Add(max(0, cpu.Seconds()))
	m.gather.Observe(elapsed.Seconds())
	m.resident.Set(resident)
}

// waiting shows the samples that wait, the oldest of them, and what is on disk.
func (m *metrics) waiting(samples int, oldest time.Time, bytes int64) {
	m.backlog.Set(float64(samples))
	m.spool.Set(float64(bytes))
	age := 0.0
	if samples > 0 {
		age = max(0, time.Since(oldest).Seconds()) // a clock may have been set back
	}
	m.oldest.Set(age)
}
