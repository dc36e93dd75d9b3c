package collector

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// recorder is our own gatherer as Prometheus wants one. It makes a reading of
// what it hands out.
type recorder struct {
	g       *gatherer
	mu      sync.Mutex
	reading reading
}

func (r *recorder) Describe(chan<- *prometheus.Desc) {}

func (r *recorder) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(chan prometheus.Metric)
	go r.g.whole.update(all)
	var err error
	if r.reading, err = r.g.readFrom(bundle{tee{all, out}}); err != nil {
		panic(err)
	}
}

// tee is a collector that hands metrics on and repeats them elsewhere.
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

// What is scraped over HTTP makes the same sample as what is gathered here.
func TestScraper_MakesTheSampleThatIsGatheredHere(t *testing.T) {
	g, err := theGatherer()
	if err != nil {
		t.Fatal(err)
	}
	here, registry := &recorder{g: g}, prometheus.NewRegistry()
	registry.MustRegister(here)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	defer server.Close()
	s, err := newScraper(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var scraped, gathered [2]reading
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := range scraped {
		if scraped[i], err = s.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		gathered[i] = here.reading
		gathered[i].at = scraped[i].at
		<-tick.C // processors work meanwhile
	}
	got, ok := sampleBetween(scraped[0], scraped[1])
	want, wantOK := sampleBetween(gathered[0], gathered[1])
	// Processors' times are added up in any order.
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" || !ok || !wantOK {
		t.Errorf("sample (-gathered here +scraped):\n%s", diff)
	}
	if got.CPURatio == nil || got.LoadAverage == nil || got.MemoryAvailableBytes == nil || got.DiskBusyRatio == nil && got.NetworkReceivedBytesPerSecond == nil {
		t.Errorf("sample = %+v, want what this machine measures", got)
	}
}
