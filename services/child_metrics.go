package services

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// childMetrics show the supervision of one child.
type childMetrics struct {
	up       prometheus.Gauge
	restarts prometheus.Counter
}

func newChildMetrics(name string, reg prometheus.Registerer) *childMetrics {
	labels := prometheus.Labels{processLabel: name}
	m := &childMetrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name:        "courier_services_child_up",
			Help:        "1 while the child process runs and serves its metrics, else 0.",
			ConstLabels: labels,
		}),
		restarts: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "courier_services_child_restarts_total",
			Help:        "Restarts of the child process after it ended unasked.",
			ConstLabels: labels,
		}),
	}
	if reg != nil {
		reg.MustRegister(m.up, m.restarts)
	}
	return m
}

const (
	processLabel    = "process"       // tells a child's metrics from those of its parent
	childTimeout    = 2 * time.Second // for an answer of the child over HTTP
	maxMetricsBytes = 4 << 20         // of the child's /metrics
)

// Ready returns nil when the child is running and ready, else the reason.
func (c *Child) Ready() error {
	body, err := c.get("/readyz")
	if err != nil {
		return fmt.Errorf("child %s is not ready: %w", c.o.Name, err)
	}
	return body.Close()
}

// Gather returns the metrics of the child, each with the label "process"; none while
// the child does not run. It makes Child a prometheus.Gatherer.
func (c *Child) Gather() ([]*dto.MetricFamily, error) {
	body, err := c.get("/metrics")
	if err != nil {
		c.log.Debug("metrics of the child are not available", "error", err)
		return nil, nil // courier_services_child_up shows it
	}
	defer func() { _ = body.Close() }() // only read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	byName, err := parser.TextToMetricFamilies(io.LimitReader(body, maxMetricsBytes))
	if err != nil {
		return nil, fmt.Errorf("read metrics of child %s: %w", c.o.Name, err)
	}
	families := make([]*dto.MetricFamily, 0, len(byName))
	for _, f := range byName {
		for _, m := range f.Metric {
			c.label(m)
		}
		families = append(families, f)
	}
	return families, nil
}

// label adds the label of the child to a metric, in the order of names.
func (c *Child) label(m *dto.Metric) {
	name, value := processLabel, c.o.Name
	m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
}

// get asks the child over HTTP. The caller closes the body.
func (c *Child) get(path string) (io.ReadCloser, error) {
	c.mu.Lock()
	address := c.address
	c.mu.Unlock()
	if address == "" {
		return nil, fmt.Errorf("it does not run")
	}
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	body := canceledBody{response.Body, cancel}
	if response.StatusCode != http.StatusOK {
		_ = body.Close() // the status says enough
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return body, nil
}

// canceledBody ends its request's context when it is closed.
type canceledBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b canceledBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
