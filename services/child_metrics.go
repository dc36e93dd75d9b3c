package services

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

type childMetrics struct {
	up       prometheus.Gauge
	restarts prometheus.Counter
}

func newChildMetrics(name string, reg prometheus.Registerer) *childMetrics {
	factory := promauto.With(reg)
	labels := prometheus.Labels{processLabel: name}
	return &childMetrics{
		up: factory.NewGauge(prometheus.GaugeOpts{
			Name:        "courier_services_child_up",
			Help:        "1 while the child process runs and serves its metrics, else 0.",
			ConstLabels: labels,
		}),
		restarts: factory.NewCounter(prometheus.CounterOpts{
			Name:        "courier_services_child_restarts_total",
			Help:        "Restarts of the child process after it ended unexpectedly.",
			ConstLabels: labels,
		}),
	}
}

const (
	processLabel    = "process"       // name of the child, on its metrics
	childTimeout    = 2 * time.Second // maximum time of an HTTP request to the child
	maxMetricsBytes = 4 << 20         // maximum size of the child's /metrics
)

// Ready returns nil when the child is running and ready, else the reason.
func (c *Child) Ready() error {
	if _, err := c.get("/readyz"); err != nil {
		return fmt.Errorf("child %s is not ready: %w", c.o.Name, err)
	}
	return nil
}

// Gather returns the metrics of the child, each with the label "process". There are none while the
// child does not run. Gather implements prometheus.Gatherer.
func (c *Child) Gather() ([]*dto.MetricFamily, error) {
	page, err := c.get("/metrics")
	if err != nil {
		c.log.Debug("metrics of the child are not available", "error", err)
		return nil, nil // courier_services_child_up is 0.
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	byName, err := parser.TextToMetricFamilies(bytes.NewReader(page))
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

// label adds the label "process" to a metric and keeps its labels sorted by name.
func (c *Child) label(m *dto.Metric) {
	m.Label = append(m.Label, &dto.LabelPair{Name: new(processLabel), Value: &c.o.Name})
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
}

func (c *Child) get(path string) ([]byte, error) {
	c.mu.Lock()
	address := c.address
	c.mu.Unlock()
	if address == "" {
		return nil, errors.New("it is not running")
	}
	client := http.Client{Timeout: childTimeout}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxMetricsBytes))
}
