package collector

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// recorder is our own gatherer, which also remembers what it handed out.
type recorder struct {
	mu       sync.Mutex
	families []*dto.MetricFamily
}

func (r *recorder) Gather() ([]*dto.MetricFamily, error) {
	g, err := theGatherer()
	if err != nil {
		return nil, err
	}
	families, err := g.whole.Gather()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families = families
	return families, err
}

// What is scraped over HTTP makes the same sample as what is gathered here.
func TestScraper_MakesTheSampleThatIsGatheredHere(t *testing.T) {
	here := &recorder{}
	server := httptest.NewServer(promhttp.HandlerFor(here, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
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
		gathered[i] = newReading(scraped[i].at)
		for _, f := range here.families {
			gathered[i].addFamily(f)
		}
		<-tick.C // processors work meanwhile
	}
	got, ok := sampleBetween(scraped[0], scraped[1])
	want, wantOK := sampleBetween(gathered[0], gathered[1])
	if diff := cmp.Diff(want, got); diff != "" || !ok || !wantOK {
		t.Errorf("sample (-gathered here +scraped):\n%s", diff)
	}
	if got.CPURatio == nil || got.LoadAverage == nil || got.MemoryAvailableBytes == nil || got.DiskBusyRatio == nil && got.NetworkReceivedBytesPerSecond == nil {
		t.Errorf("sample = %+v, want what this machine measures", got)
	}
}

var _ prometheus.Gatherer = (*recorder)(nil)
