package collector

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// serveExporter serves metrics until the test ends.
func serveExporter(t testing.TB, serve http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
}

func writeText(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

const someMetrics = `# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="user"} 100
node_cpu_seconds_total{cpu="0",mode="idle"} 1e3
node_load1 1.5
node_memory_MemTotal_bytes 8e+09
`

func TestScraper_AcceptsAddressesOfANodeExporter(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"", "/metrics"},
		{"/", "/metrics"},
		{"/node/metrics?tenant=a", "/node/metrics"},
	} {
		requests := make(chan *http.Request, 1)
		address := serveExporter(t, func(w http.ResponseWriter, r *http.Request) {
			requests <- r
			_, _ = io.WriteString(w, someMetrics)
		})
		s, err := newScraper(address + test.path)
		must(t, err)
		r, err := s.read(t.Context())
		if err != nil || r.cpus["0"] != (cpuSeconds{
			busy: 100,
			idle: 1000,
		}) || *r.value(loadMetric) != 1.5 || *r.value(memoryTotalMetric) != 8e9 {
			t.Errorf("read() = %+v, %v, want the three metrics", r, err)
		}
		got := <-requests
		if got.URL.Path != test.want || !slices.Equal(got.URL.Query()["collect[]"], sampleCollectors) ||
			strings.Contains(test.path, "tenant") && got.URL.Query().Get("tenant") != "a" {
			t.Errorf("requested %s, want %s with the sample collectors", got.URL, test.want)
		}
	}
}

// A node_exporter refuses a request for a disabled collector.
func TestScraper_RequestsAllMetricsAfterARefusal(t *testing.T) {
	var queries []string
	address := serveExporter(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		if r.URL.RawQuery != "" {
			http.Error(w, "couldn't create filtered metrics handler: missing collector: pressure",
				http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, someMetrics)
	})
	s, err := newScraper(address)
	must(t, err)
	for range 2 {
		if _, err := s.read(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(queries) != 3 || queries[0] == "" || queries[1] != "" || queries[2] != "" {
		t.Errorf("queries = %q, want one with collectors, then two for all metrics", queries)
	}
}

func TestScraper_ExplainsFailures(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{
			"status",
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
			"status 401 Unauthorized",
		},
		{
			"an HTML page",
			writeText("<html><body>node exporter</body></html>\n"),
			"parse the response as metrics",
		},
		{"other metrics", writeText("go_goroutines 7\n"), "no metrics of processors"},
		{"an empty response", writeText(""), "no metrics of processors"},
		{
			"an incomplete response",
			writeText(someMetrics + `node_cpu_seconds_total{cpu="1`),
			"parse the response as metrics",
		},
		{"an endless response", func(w http.ResponseWriter, _ *http.Request) {
			block := []byte(strings.Repeat("# filler\n", 4096))
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "longer than"},
		{"a small compressed response", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.Copy(z, io.LimitReader(emptyLines{}, maxScrapeBytes+100))
			_ = z.Close()
		}, "longer than"},
		{
			"a closed connection",
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"EOF",
		},
		{
			"a redirect loop",
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
			"redirects",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := strings.Replace(serveExporter(t, test.serve), "://", "://ada:secret@", 1)
			s, err := newScraper(address)
			must(t, err)
			_, err = s.read(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), s.all.Host) || strings.Contains(err.Error(), "secret") {
				t.Errorf("read() = %v, want %q and the address without its password", err, test.want)
			}
		})
	}
}

// emptyLines is an endless text of empty lines.
type emptyLines struct{}

func (emptyLines) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestScraper_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := serveExporter(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	s, err := newScraper(address)
	must(t, err)
	if _, err := s.read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read() = %v, want context.Canceled", err)
	}
	if s.client.Timeout != scrapeTimeout {
		t.Errorf("timeout = %s, want %s", s.client.Timeout, scrapeTimeout)
	}
}

func TestNewScraper_RejectsInvalidAddresses(t *testing.T) {
	for _, address := range []string{
		"localhost:9100",
		"ftp://host/metrics",
		"http://",
		"://",
		"/metrics",
		"http://[::1",
	} {
		_, err := New(nil, Options{Node: "n", NodeExporterURL: address}, quiet, nil)
		var e *schemas.Error
		if !errors.As(err, &e) || e.Field != "node_exporter_url" {
			t.Errorf("New(%q) = %v, want invalid node_exporter_url", address, err)
		}
	}
}

func TestNodeReading_IgnoresInvalidValues(t *testing.T) {
	r := newReading(noon)
	families, err := parseMetrics(strings.NewReader(
		"node_load1 NaN\nnode_memory_MemTotal_bytes +Inf\nnode_memory_MemAvailable_bytes -1\n" +
			"node_disk_read_bytes_total{device=\"sda\"} 1e300\n" +
			"# TYPE node_cpu_seconds_total histogram\nnode_cpu_seconds_total_bucket{le=\"1\"} 5\n",
	))
	must(t, err)
	for _, f := range families {
		r.addFamily(f)
	}
	if diff := cmp.Diff(newReading(noon), r, cmp.AllowUnexported(nodeReading{}, cpuSeconds{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "cpus" }, cmp.Ignore())); diff != "" {
		t.Errorf("reading (-want +got):\n%s", diff)
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add([]byte(someMetrics), []byte(someMetrics))
	f.Add([]byte("node_load1 NaN\n# TYPE a histogram\na_bucket{le=\"1\"} 5\n"),
		[]byte("{\"node_load1\"} 2\n\xff"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		var readings [2]nodeReading
		for i, text := range [][]byte{before, after} {
			readings[i] = newReading(noon.Add(time.Duration(i) * time.Second))
			families, err := parseMetrics(bytes.NewReader(text))
			if err != nil {
				return
			}
			for _, family := range families {
				readings[i].addFamily(family)
			}
		}
		s, ok := sampleBetween(readings[0], readings[1])
		s.Node, s.BootID, s.Number, s.At, s.EventID = "n", "b", 1, noon, "n/b/1"
		if err := s.Validate(); !ok || err != nil && s.Cores <= schemas.MaxCPUs {
			t.Errorf("sample %+v is not valid: %v", s, err)
		}
		if _, err := schemas.Marshal(&s); err != nil {
			t.Errorf("sample %+v cannot be encoded: %v", s, err)
		}
	})
}

// While the node_exporter is down, the collector takes no samples, and logs that once.
func TestCollector_SurvivesAnOutageOfTheExporter(t *testing.T) {
	isDown := make(chan bool, 1)
	isDown <- true
	log := bustest.NewBuffer()
	address := serveExporter(t, func(w http.ResponseWriter, _ *http.Request) {
		down := <-isDown
		isDown <- down
		if down {
			http.Error(w, "restarting", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, someMetrics)
	})
	b := bustest.New(t)
	c, err := New(b, Options{
		Node:            "scraped",
		Interval:        minInterval,
		NodeExporterURL: address,
	}, slog.New(slog.NewTextHandler(log, nil)), nil)
	if err != nil {
		t.Skip("samples require Linux: ", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	log.Await(t, "node counters unreadable")
	<-isDown
	isDown <- false
	log.Await(t, "node counters readable again")
	first := firstSample(t, b, "scraped")
	if first.LoadAverage == nil || *first.LoadAverage != 1.5 || first.Cores != 1 ||
		first.CPURatio != nil {
		t.Errorf(
			"sample = %+v, want the served figures and no CPU ratio, because the counters do not change",
			first)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// firstSample waits for the first stored sample of a node.
func firstSample(t *testing.T, b *bus.Bus, node string) (first *schemas.Sample) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_ = b.Follow(ctx, bus.FollowOptions{
		Stream:   schemas.StreamNode,
		Subjects: []string{schemas.NodeSubject(node, schemas.EventSample)},
	}, func(r bus.Record) error {
		if first == nil {
			first = r.Event.(*schemas.Sample)
		}
		cancel()
		return nil
	})
	if first == nil {
		t.Fatalf("no sample of %s", node)
	}
	return first
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
