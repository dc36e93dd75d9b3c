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
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/node_exporter/collector"
	"golang.org/x/sys/unix"
)

// gatherer reads the node's counters. node_exporter keeps its collectors and
// their state in package variables, so a process has one gatherer.
type gatherer struct {
	mu      sync.Mutex
	whole   bundle
	brief   bundle
	leftOut []string // collectors that this system lacks, with the reason
	names   map[*prometheus.Desc]string
}

// theGatherer makes the process's gatherer at its first use.
var theGatherer = sync.OnceValues(newGatherer)

func newGatherer() (*gatherer, error) {
	// Without this its collectors have no settings and it silently has none.
	// Our own arguments are none of its business.
	if _, err := kingpin.CommandLine.Parse([]string{}); err != nil {
		return nil, fmt.Errorf("settle node_exporter's flags: %w", err)
	}
	g := &gatherer{names: map[*prometheus.Desc]string{}}
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
	g.whole, g.brief = newBundle(parts, sampleCollectors), newBundle(parts, observerCollectors)
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

// bundle is some collectors as one.
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

// update sends all metrics and closes the channel. A collector that fails only
// leaves its figures out of that reading.
func (b bundle) update(metrics chan<- prometheus.Metric) {
	defer close(metrics)
	for _, part := range b {
		_ = part.Update(metrics) // a missing figure is absent from the sample, which says it
	}
}

// read returns the node's counters now.
func (g *gatherer) read(context.Context) (reading, error) { return g.readFrom(g.whole) }

// readBrief returns those of an Observer.
func (g *gatherer) readBrief() (reading, error) { return g.readFrom(g.brief) }

// readFrom takes what the collectors of a bundle send, without the registry that
// usually stands between: sorting and checking all to read a tenth would cost as
// much as publishing the sample.
func (g *gatherer) readFrom(b bundle) (reading, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := newReading(time.Now())
	metrics := make(chan prometheus.Metric, 64)
	go b.update(metrics)
	var broken error
	for m := range metrics {
		name := g.name(m.Desc())
		if _, wanted := takers[name]; !wanted {
			continue
		}
		var written dto.Metric
		if err := m.Write(&written); err != nil {
			broken = fmt.Errorf("gather %s: %w", name, err)
			continue
		}
		r.addMetric(name, &written)
	}
	return r, broken
}

// mostNames bounds what is remembered of descriptions: some collectors make
// theirs anew each time.
const mostNames = 512

// name returns the name that a description begins with: only its text tells it.
func (g *gatherer) name(d *prometheus.Desc) string {
	name, known := g.names[d]
	if known {
		return name
	}
	_, name, _ = strings.Cut(d.String(), `fqName: "`)
	name, _, _ = strings.Cut(name, `"`)
	if len(g.names) < mostNames {
		g.names[d] = name
	}
	return name
}

// bootID returns the identity that the kernel took at boot.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot ID: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// sinceBoot is the age of the boot, time asleep included.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // a kernel before 2.6.39
	}
	return time.Duration(t.Nano())
}
