package collector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"courier/schemas"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// scrapeTimeout bounds a reading. The next one is the next attempt.
	scrapeTimeout = 5 * time.Second
	// maxScrapeBytes bounds an answer, unpacked: a node of hundreds of processors
	// and disks has some hundred kilobytes.
	maxScrapeBytes = 8 << 20
)

// scraper reads the node's counters from a node_exporter that runs there.
type scraper struct {
	client *http.Client
	all    url.URL // every metric it has
	ours   url.URL // those of sampleCollectors alone
	text   bytes.Buffer
	whole  bool // it does not give ours: one of the collectors is turned off
}

// newScraper takes the address of a node_exporter; without a path, /metrics.
func newScraper(address string) (*scraper, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, schemas.Invalid("node_exporter_url", "%q is not an address such as http://127.0.0.1:9100/metrics", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	s := &scraper{client: &http.Client{Timeout: scrapeTimeout}, all: *u, ours: *u}
	q := u.Query()
	for _, c := range sampleCollectors {
		q.Add("collect[]", c)
	}
	s.ours.RawQuery = q.Encode()
	return s, nil
}

// read scrapes once. Errors name the address, without its password.
func (s *scraper) read(ctx context.Context) (reading, error) {
	r, err := s.scrape(ctx)
	if err != nil {
		return reading{}, fmt.Errorf("read node_exporter at %s: %w", s.all.Redacted(), err)
	}
	return r, nil
}

// errNoNodeMetrics means that something else answers than a node_exporter.
var errNoNodeMetrics = errors.New("the answer has no metric of a node's processors, load or memory")

func (s *scraper) scrape(ctx context.Context) (reading, error) {
	r := newReading(time.Now())
	answer, err := s.get(ctx)
	if err != nil {
		return r, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return r, fmt.Errorf("status %s", answer.Status)
	}
	s.text.Reset()
	if _, err := s.text.ReadFrom(io.LimitReader(answer.Body, maxScrapeBytes+1)); err != nil {
		return r, err
	}
	if s.text.Len() > maxScrapeBytes {
		s.text = bytes.Buffer{} // the next one is not as long
		return r, fmt.Errorf("the answer is longer than %d bytes", maxScrapeBytes)
	}
	families, err := parseMetrics(&s.text)
	if err != nil {
		return r, err
	}
	for _, f := range families {
		r.addFamily(f)
	}
	if len(r.cpus) == 0 && r.loadAverage == nil && r.memoryTotal == nil {
		return r, errNoNodeMetrics
	}
	return r, nil
}

// get asks for what a sample is made of, and for everything once that is refused.
func (s *scraper) get(ctx context.Context) (*http.Response, error) {
	if !s.whole {
		answer, err := s.ask(ctx, &s.ours)
		if err != nil || answer.StatusCode != http.StatusBadRequest {
			return answer, err
		}
		_ = answer.Body.Close() // it is of no use
		s.whole = true
	}
	return s.ask(ctx, &s.all)
}

func (s *scraper) ask(ctx context.Context, address *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "courier-collector")
	answer, err := s.client.Do(request)
	var wrong *url.Error
	if errors.As(err, &wrong) {
		err = wrong.Err // its address is named by read
	}
	return answer, err
}

// parseMetrics reads metrics in the text format of Prometheus.
func parseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("the answer is no metrics: %s", cmp.Or(oneLine(strings.ToValidUTF8(err.Error(), "?")), "unknown"))
	}
	return families, nil
}
