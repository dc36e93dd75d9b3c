package collector

import (
	"bytes"
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
	// scrapeTimeout limits a reading. A failed reading is not repeated before the next tick.
	scrapeTimeout = 5 * time.Second

	// maxScrapeBytes limits the size of an uncompressed response. A node with hundreds of
	// processors and disks has some hundred kilobytes.
	maxScrapeBytes = 8 << 20
)

type scraper struct {
	client   *http.Client
	all      url.URL // returns all metrics
	filtered url.URL // returns only the metrics of sampleCollectors

	// useAll is set if filtered is refused, because node_exporter has disabled a collector.
	useAll bool
}

func newScraper(address string) (*scraper, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, schemas.Invalid("node_exporter_url",
			"%q is not an address such as http://127.0.0.1:9100/metrics", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	s := &scraper{client: &http.Client{Timeout: scrapeTimeout}, all: *u, filtered: *u}
	q := u.Query()
	for _, c := range sampleCollectors {
		q.Add("collect[]", c)
	}
	s.filtered.RawQuery = q.Encode()
	return s, nil
}

// read scrapes once. Errors name the address without its password.
func (s *scraper) read(ctx context.Context) (nodeReading, error) {
	r, err := s.scrape(ctx)
	if err != nil {
		return nodeReading{}, fmt.Errorf("read node_exporter at %s: %w", s.all.Redacted(), err)
	}
	return r, nil
}

var errNoNodeMetrics = errors.New(
	"the response has no metrics of processors, load or memory; want a node_exporter")

func (s *scraper) scrape(ctx context.Context) (nodeReading, error) {
	r := newReading(time.Now())
	response, err := s.get(ctx)
	if err != nil {
		return r, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return r, fmt.Errorf("status %s", response.Status)
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, maxScrapeBytes+1))
	if err != nil {
		return r, err
	}
	if len(text) > maxScrapeBytes {
		return r, fmt.Errorf("the response is longer than %d bytes", maxScrapeBytes)
	}
	families, err := parseMetrics(bytes.NewReader(text))
	if err != nil {
		return r, err
	}
	for _, f := range families {
		r.addFamily(f)
	}
	if len(r.cpus) == 0 && len(r.totals) == 0 {
		return r, errNoNodeMetrics
	}
	return r, nil
}

// get requests the metrics that a sample needs, or all metrics after that was refused once.
func (s *scraper) get(ctx context.Context) (*http.Response, error) {
	if !s.useAll {
		response, err := s.request(ctx, &s.filtered)
		if err != nil || response.StatusCode != http.StatusBadRequest {
			return response, err
		}
		_ = response.Body.Close() // it is not used
		s.useAll = true
	}
	return s.request(ctx, &s.all)
}

func (s *scraper) request(ctx context.Context, address *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "courier-collector")
	response, err := s.client.Do(request)
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // read adds the address
	}
	return response, err
}

func parseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		reason := schemas.OneLine(strings.ToValidUTF8(err.Error(), "?"))
		return nil, fmt.Errorf("parse the response as metrics: %s", reason)
	}
	return families, nil
}
