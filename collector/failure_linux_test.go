package collector

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"courier/bus/bustest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/node_exporter/collector"
)

// failingCollector stands for a collector of node_exporter whose files are not readable any more.
type failingCollector struct{ err error }

func (c *failingCollector) Update(chan<- prometheus.Metric) error { return c.err }

// The figures of a failing collector are missing, which is counted, and logged once.
func TestCollector_SurvivesAFailingCollector(t *testing.T) {
	log := bustest.NewBuffer()
	c, err := New(nil, Options{Node: "n"}, slog.New(slog.NewTextHandler(log, nil)), nil)
	must(t, err)
	failing := &failingCollector{errors.New("permission denied")}
	all := slices.Concat([]collector.Collector{failing}, c.gatherer.collectors)
	c.gatherer = &gatherer{collectors: all, names: map[*prometheus.Desc]string{}}
	for range 2 {
		if r := c.read(); len(r.cpus) == 0 {
			t.Error("the figures of the other collectors are missing, too")
		}
	}
	log.Await(t, "node counters unreadable\" error=\"permission denied\"")
	failing.err = nil
	c.read()
	log.Await(t, "node counters readable again")
	if n := testutil.ToFloat64(c.metrics.failedReadings); n != 2 {
		t.Errorf("%v failed readings, want 2", n)
	}
}
