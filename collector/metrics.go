package collector

import (
	"time"

	"courier/spool"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	publishedSamples prometheus.Counter
	droppedSamples   prometheus.Counter
	failedReadings   prometheus.Counter
	replayedEvents   prometheus.Counter

	queueSamples  prometheus.Gauge
	queueAge      prometheus.Gauge
	spoolBytes    prometheus.Gauge
	spoolFailures prometheus.Counter
	counted       spool.SampleStats // counts that are included in the counters

	readingCPU  prometheus.Counter
	readingTime prometheus.Histogram
	resident    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		name = "courier_collector_" + name
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		name = "courier_collector_" + name
		return factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &metrics{
		publishedSamples: counter("published_samples_total",
			"Node samples that were published and acknowledged."),
		droppedSamples: counter("dropped_samples_total",
			"Node samples that were dropped because the queue was full or they were invalid."),
		failedReadings: counter("failed_readings_total", "Failed readings of the node's counters."),
		replayedEvents: counter("replayed_events_total", "Job events that were published from the spool."),
		queueSamples:   gauge("waiting_samples", "Node samples that wait to be published."),
		queueAge: gauge("waiting_age_seconds",
			"Age of the oldest node sample that waits to be published; 0 if none waits."),
		spoolBytes: gauge("spool_bytes", "Size of the node samples on disk that wait to be published."),
		spoolFailures: counter("spool_failures_total",
			"Failed writes of node samples to disk. The samples stay in memory."),
		readingCPU: counter("cpu_seconds_total",
			"CPU time of the process during readings of the node's counters. It includes other "+
				"work of the process at the same time."),
		readingTime: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "courier_collector_reading_seconds",
			Help:    "Duration of a reading of the node's counters.",
			Buckets: prometheus.ExponentialBuckets(250e-6, 2, 12),
		}),
		resident: gauge("resident_bytes", "Resident memory of the collector's process."),
	}
}

func (m *metrics) addReading(cpu, elapsed time.Duration, resident float64) {
	m.readingCPU.Add(max(0, cpu.Seconds()))
	m.readingTime.Observe(elapsed.Seconds())
	m.resident.Set(resident)
}

func (m *metrics) setQueue(s spool.SampleStats) {
	m.queueSamples.Set(float64(s.Samples))
	m.spoolBytes.Set(float64(s.Bytes))
	age := 0.0
	if s.Samples > 0 {
		age = max(0, time.Since(s.Oldest).Seconds()) // the wall clock can be set back
	}
	m.queueAge.Set(age)
	m.droppedSamples.Add(float64(s.Dropped - m.counted.Dropped))
	m.spoolFailures.Add(float64(s.WriteFailures - m.counted.WriteFailures))
	m.counted = s
}
