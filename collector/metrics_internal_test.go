package collector

import (
	"log/slog"
	"strings"
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

func TestCPUModelOf(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"x86",
			"processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\n" +
				"model name\t: AMD EPYC 7763  64-Core Processor\n\nprocessor\t: 1\n" +
				"model name\t: AMD EPYC 7763  64-Core Processor\n",
			"AMD EPYC 7763 64-Core Processor",
		},
		{
			"POWER",
			"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2300.000000MHz\n",
			"POWER9, altivec supported",
		},
		{"MIPS", "system type\t\t: x\ncpu model\t\t: MIPS 74Kc V4.12\n", "MIPS 74Kc V4.12"},
		{
			"ARM with part numbers",
			"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
			"",
		},
		{
			"different processors",
			"model name\t: big\nmodel name\t: little\nmodel name\t: big\n",
			"big and little",
		},
		{"empty", "", ""},
		{"a long name", "model name: " + strings.Repeat("ä", 100), strings.Repeat("ä", 64)},
		{"invalid UTF-8", "model name: a\xff\x00b\n", "a b"},
	} {
		if got := cpuModelOf(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }
