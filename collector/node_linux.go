package collector

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/node_exporter/collector"
)

// gatherer reads the node's counters. node_exporter keeps its collectors and
// their state in package variables, so a process has one gatherer.
type gatherer struct {
	mu      sync.Mutex
	whole   *prometheus.Registry
	brief   *prometheus.Registry
	leftOut []string // collectors that this system lacks, with the reason
}

// theGatherer makes the process's gatherer at its first use.
var theGatherer = sync.OnceValues(newGatherer)

func newGatherer() (*gatherer, error) {
	// Without this its collectors have no settings and it silently has none.
	// Our own arguments are none of its business.
	if _, err := kingpin.CommandLine.Parse([]string{}); err != nil {
		return nil, fmt.Errorf("settle node_exporter's flags: %w", err)
	}
	g := &gatherer{whole: prometheus.NewRegistry(), brief: prometheus.NewRegistry()}
	parts := map[string]collector.Collector{}
	for _, name := range sampleCollectors {
		part, err := newPart(name)
		if err != nil {
			g.leftOut = append(g.leftOut, fmt.Sprintf("%s (%v)", name, err))
			continue
		}
		parts[name] = part
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("no collector works here: %s", strings.Join(g.leftOut, ", "))
	}
	if err := g.whole.Register(newBundle(parts, sampleCollectors)); err != nil {
		return nil, fmt.Errorf("register node collectors: %w", err)
	}
	if err := g.brief.Register(newBundle(parts, observerCollectors)); err != nil {
		return nil, fmt.Errorf("register node collectors: %w", err)
	}
	return g, nil
}

// newPart makes one collector and tries it once.
func newPart(name string) (collector.Collector, error) {
	all, err := collector.NewNodeCollector(slog.New(slog.DiscardHandler), name)
	if err != nil {
		return nil, err
	}
	part := all.Collectors[name]
	drained := make(chan struct{})
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(drained)
		for range metrics {
		}
	}()
	err = part.Update(metrics)
	close(metrics)
	<-drained
	return part, err
}

// bundle is some collectors as one. One that fails later only leaves its
// figures out of that reading.
type bundle []collector.Collector

func newBundle(parts map[string]collector.Collector, names []string) bundle {
	var b bundle
	for _, name := range names {
		if part, works := parts[name]; works {
			b = append(b, part)
		}
	}
	return b
}

// Describe implements prometheus.Collector: what there is shows at collection.
func (b bundle) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (b bundle) Collect(metrics chan<- prometheus.Metric) {
	for _, part := range b {
		_ = part.Update(metrics) // a missing figure is absent from the sample, which says it
	}
}

// read returns the node's counters now.
func (g *gatherer) read(context.Context) (reading, error) { return g.readFrom(g.whole) }

// readBrief returns those of an Observer.
func (g *gatherer) readBrief() (reading, error) { return g.readFrom(g.brief) }

func (g *gatherer) readFrom(registry prometheus.Gatherer) (reading, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := newReading(time.Now())
	families, err := registry.Gather()
	if err != nil {
		return r, fmt.Errorf("gather node metrics: %w", err)
	}
	for _, f := range families {
		r.addFamily(f)
	}
	return r, nil
}

// bootID returns the identity that the kernel took at boot.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot ID: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
