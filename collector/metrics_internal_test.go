package collector

import (
	"testing"
	"time"

	"courier/spool"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var d dto.Metric
	must(t, m.Write(&d))
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func TestMetrics_DescribeTheQueue(t *testing.T) {
	m := newMetrics(nil)
	m.setQueue(spool.SampleStats{
		Samples:       2,
		Oldest:        time.Now().Add(-time.Hour),
		Bytes:         500,
		Dropped:       3,
		WriteFailures: 1,
	})
	m.setQueue(spool.SampleStats{
		Samples: 1,
		// The wall clock was set back after the sample was taken.
		Oldest:        time.Now().Add(time.Hour),
		Bytes:         250,
		Dropped:       5,
		WriteFailures: 1,
	})

	got := map[string]float64{
		"samples":        value(t, m.queueSamples),
		"age":            value(t, m.queueAge),
		"bytes":          value(t, m.spoolBytes),
		"dropped":        value(t, m.droppedSamples),
		"write failures": value(t, m.spoolFailures),
	}
	want := map[string]float64{
		"samples":        1,
		"age":            0,
		"bytes":          250,
		"dropped":        5,
		"write failures": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
