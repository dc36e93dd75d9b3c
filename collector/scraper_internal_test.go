package collector

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
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

// exporter serves text as a node_exporter would, until the test ends.
func exporter(t testing.TB, serve http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

const someMetrics = `# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="user"} 100
node_cpu_seconds_total{cpu="0",mode="idle"} 1e3
node_load1 1.5
node_memory_MemTotal_bytes 8e+09
`

func TestScraper_TakesAnyAddressOfOne(t *testing.T) {
	for _, test := range []struct{ path, want string }{{"", "/metrics"}, {"/", "/metrics"}, {"/node/metrics?tenant=a", "/node/metrics"}} {
		asked := make(chan *http.Request, 1)
		address := exporter(t, func(w http.ResponseWriter, r *http.Request) {
			asked <- r
			_, _ = io.WriteString(w, someMetrics)
		})
		s, err := newScraper(address + test.path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.read(t.Context())
		if err != nil || r.cpus["0"] != (cpuSeconds{busy: 100, idle: 1000}) || *r.loadAverage != 1.5 || *r.memoryTotal != 8e9 {
			t.Errorf("read() = %+v, %v, want the three metrics", r, err)
		}
		got := <-asked
		if got.URL.Path != test.want || !slices.Equal(got.URL.Query()["collect[]"], sampleCollectors) || strings.Contains(test.path, "tenant") && got.URL.Query().Get("tenant") != "a" {
			t.Errorf("asked for %s, want %s with our collectors", got.URL, test.want)
		}
	}
}

// A node_exporter refuses to collect by name what is turned off.
func TestScraper_AsksForEverythingOnceOursAreRefused(t *testing.T) {
	var asked []string
	address := exporter(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		if r.URL.RawQuery != "" {
			http.Error(w, "couldn't create filtered metrics handler: missing collector: pressure", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, someMetrics)
	})
	s, err := newScraper(address)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.read(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(asked) != 3 || asked[0] == "" || asked[1] != "" || asked[2] != "" {
		t.Errorf("asked for %q, want ours once, then everything", asked)
	}
}

func TestScraper_SaysWhatIsWrongAndWhere(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{"status", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, "status 401 Unauthorized"},
		{"a page", write("<html><body>node exporter</body></html>\n"), "no metrics"},
		{"other metrics", write("go_goroutines 7\n"), "no metric of a node"},
		{"nothing", write(""), "no metric of a node"},
		{"torn", write(someMetrics + `node_cpu_seconds_total{cpu="1`), "no metrics"},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			block := []byte(strings.Repeat("# filler\n", 4096))
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "longer than"},
		{"small, and endless when unpacked", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.Copy(z, io.LimitReader(blanks{}, maxScrapeBytes+100))
			_ = z.Close()
		}, "longer than"},
		{"hung up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"around in circles", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }, "redirects"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := strings.Replace(exporter(t, test.serve), "://", "://ada:secret@", 1)
			s, err := newScraper(address)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.read(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), s.all.Host) || strings.Contains(err.Error(), "secret") {
				t.Errorf("read() = %v, want %q and the address without its password", err, test.want)
			}
		})
	}
}

// blanks is a text of empty lines without an end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestScraper_WaitsNoLongerThanItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := exporter(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	s, err := newScraper(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read() = %v, want it cancelled", err)
	}
	if s.client.Timeout != scrapeTimeout {
		t.Errorf("timeout = %s, want %s", s.client.Timeout, scrapeTimeout)
	}
}

func TestNewScraper_RefusesWhatIsNoAddress(t *testing.T) {
	for _, address := range []string{"localhost:9100", "ftp://host/metrics", "http://", "://", "/metrics", "http://[::1"} {
		_, err := New(nil, Options{Node: "n", NodeExporterURL: address}, quiet, nil)
		var e *schemas.Error
		if !errors.As(err, &e) || e.Field != "node_exporter_url" {
			t.Errorf("New(%q) = %v, want invalid node_exporter_url", address, err)
		}
	}
}

func TestReading_IgnoresWhatIsNoCount(t *testing.T) {
	r := newReading(noon)
	families, err := parseMetrics(strings.NewReader("node_load1 NaN\nnode_memory_MemTotal_bytes +Inf\nnode_memory_MemAvailable_bytes -1\nnode_disk_read_bytes_total{device=\"sda\"} 1e300\n" +
		"# TYPE node_cpu_seconds_total histogram\nnode_cpu_seconds_total_bucket{le=\"1\"} 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		r.addFamily(f)
	}
	if diff := cmp.Diff(newReading(noon), r, cmp.AllowUnexported(reading{}, cpuSeconds{}), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "cpus" }, cmp.Ignore())); diff != "" {
		t.Errorf("reading (-want +got):\n%s", diff)
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add([]byte(someMetrics), []byte(someMetrics))
	f.Add([]byte("node_load1 NaN\n# TYPE a histogram\na_bucket{le=\"1\"} 5\n"), []byte("{\"node_load1\"} 2\n\xff"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		var readings [2]reading
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
			t.Errorf("sample %+v cannot be written: %v", s, err)
		}
	})
}

// An exporter that goes away costs samples, not the collector, and is told once.
func TestCollector_GoesOnWithoutItsExporter(t *testing.T) {
	away := make(chan bool, 1)
	away <- true
	text := &told{lines: make(chan string, 100)}
	address := exporter(t, func(w http.ResponseWriter, _ *http.Request) {
		gone := <-away
		away <- gone
		if gone {
			http.Error(w, "restarting", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, someMetrics)
	})
	b := bustest.New(t)
	c, err := New(b, Options{Node: "scraped", Interval: shortestInterval, NodeExporterURL: address}, text.logger(), nil)
	if err != nil {
		t.Skip("samples are for Linux: ", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	text.await(t, "node samples are missing")
	<-away
	away <- false
	text.await(t, "node samples are taken again")
	first := firstSample(t, b, "scraped")
	if first.LoadAverage == nil || *first.LoadAverage != 1.5 || first.Cores != 1 || first.CPURatio != nil {
		t.Errorf("sample = %+v, want what the exporter serves, and nothing of processors that stand still", first)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// firstSample waits for the first stored sample of a node.
func firstSample(t *testing.T, b *bus.Bus, node string) (first *schemas.Sample) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_ = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamNode, Subjects: []string{schemas.NodeSubject(node, schemas.EventSample)}}, func(r bus.Record) error {
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
