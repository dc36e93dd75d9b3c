package collector

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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

func TestPhaseOf_DistributesNodesEvenly(t *testing.T) {
	const nodes, parts = 1000, 20
	for _, interval := range []time.Duration{minInterval, defaultInterval, maxInterval} {
		var in [parts]int
		for n := range nodes {
			p := phaseOf(fmt.Sprintf("rack%02d-node%03d", n/40, n%40), interval)
			if p < 0 || p >= interval {
				t.Fatalf("phase = %s, want it within %s", p, interval)
			}
			in[p*parts/interval]++
		}
		for part, n := range in { // the mean is 50, and the limits are 5 standard deviations
			if n < 15 || n > 85 {
				t.Errorf("%d of %d nodes publish in part %d of %d of %s, want about %d",
					n, nodes, part, parts, interval, nodes/parts)
			}
		}
	}
	if phaseOf("a", time.Second) == phaseOf("b", time.Second) {
		t.Error("two nodes have the same phase")
	}
}

func TestAwaitPhase_DoesNotDependOnTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for start := range 7 {
			timer := time.NewTimer(time.Duration(start) * 317 * time.Millisecond)
			<-timer.C
			begin := time.Now()
			if !awaitPhase(t.Context(), "node-7", defaultInterval) {
				t.Fatal("awaitPhase() = false, want the phase")
			}
			got := time.Duration(time.Now().UnixNano()) % defaultInterval
			want := phaseOf("node-7", defaultInterval)
			if waited := time.Since(begin); got != want || waited >= defaultInterval {
				t.Errorf("phase %s after %s, want %s within %s", got, waited, want, defaultInterval)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if awaitPhase(ctx, "node-7", maxInterval) {
			t.Error("awaitPhase() = true, want false at the end of its context")
		}
	})
}

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }
