package collector

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/node_exporter/collector"
)

// recordingCollector wraps a gatherer as a prometheus.Collector, and stores the collected metrics
// as a reading.
type recordingCollector struct {
	g       *gatherer
	mu      sync.Mutex
	reading nodeReading
}

func (r *recordingCollector) Describe(chan<- *prometheus.Desc) {}

func (r *recordingCollector) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(chan prometheus.Metric)
	go r.g.update(all)
	teed := &gatherer{collectors: []collector.Collector{tee{all, out}}, names: r.g.names}
	var err error
	if r.reading, err = teed.read(context.Background()); err != nil {
		panic(err)
	}
}

// tee is a collector that copies metrics to two channels.
type tee struct {
	from <-chan prometheus.Metric
	to   chan<- prometheus.Metric
}

func (t tee) Update(out chan<- prometheus.Metric) error {
	for m := range t.from {
		t.to <- m
		out <- m
	}
	return nil
}

// Scraped metrics give the same sample as metrics that are read in this process.
func TestScraper_MakesTheSameSampleAsTheGatherer(t *testing.T) {
	g, err := sharedGatherer()
	must(t, err)
	recorder, registry := &recordingCollector{g: g}, prometheus.NewRegistry()
	registry.MustRegister(recorder)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError,
	}))
	defer server.Close()
	s, err := newScraper(server.URL)
	must(t, err)
	var scraped, gathered [2]nodeReading
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := range scraped {
		if scraped[i], err = s.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		gathered[i] = recorder.reading
		gathered[i].at = scraped[i].at
		<-tick.C // the counters increase
	}
	got, ok := sampleBetween(scraped[0], scraped[1])
	want, wantOK := sampleBetween(gathered[0], gathered[1])
	// The times of the processors are added in any order, which affects rounding.
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" || !ok || !wantOK {
		t.Errorf("sample (-gathered +scraped):\n%s", diff)
	}
	if got.CPURatio == nil || got.LoadAverage == nil || got.MemoryAvailableBytes == nil ||
		got.DiskBusyRatio == nil && got.NetworkReceivedBytesPerSecond == nil {
		t.Errorf("sample = %+v, want the figures of this machine", got)
	}
}
