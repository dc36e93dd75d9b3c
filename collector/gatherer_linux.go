package collector

import (
	"errors"
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

type gatherer struct {
	mu          sync.Mutex
	collectors  []collector.Collector
	unavailable []string // collectors that this system does not support, with the reason
	names       map[*prometheus.Desc]string
}

// sharedGatherer returns the gatherer of this process. There is only one, because node_exporter
// keeps its collectors and their state in package variables.
var sharedGatherer = sync.OnceValues(newGatherer)

func newGatherer() (*gatherer, error) {
	// node_exporter's collectors take their settings from its flags. Without parsing, it has no
	// collectors. It must not see the arguments of this process.
	if _, err := kingpin.CommandLine.Parse([]string{}); err != nil {
		return nil, fmt.Errorf("initialise the flags of node_exporter: %w", err)
	}
	g := &gatherer{names: map[*prometheus.Desc]string{}}
	for _, name := range sampleCollectors {
		all, err := collector.NewNodeCollector(slog.New(slog.DiscardHandler), name)
		if err == nil {
			first := &gatherer{collectors: []collector.Collector{all.Collectors[name]}, names: g.names}
			_, err = first.read()
		}
		if err != nil {
			g.unavailable = append(g.unavailable, fmt.Sprintf("%s (%v)", name, err))
			continue
		}
		g.collectors = append(g.collectors, all.Collectors[name])
	}
	if len(g.collectors) == 0 {
		return nil, fmt.Errorf("no node_exporter collector is available: %s",
			strings.Join(g.unavailable, ", "))
	}
	return g, nil
}

// read reads the collectors without a registry. A registry would sort and check all
// metrics, of which a sample needs a tenth, and cost as much as publishing the sample. The figures of a
// collector that fails are missing.
func (g *gatherer) read() (nodeReading, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := newReading(time.Now())
	metrics := make(chan prometheus.Metric, 64)
	var failure error // complete when metrics is closed
	go func() {
		defer close(metrics)
		for _, c := range g.collectors {
			failure = errors.Join(failure, c.Update(metrics))
		}
	}()
	for m := range metrics {
		name := g.name(m.Desc())
		if _, isNeeded := counts[name]; !isNeeded {
			continue
		}
		var written dto.Metric
		if m.Write(&written) == nil {
			r.addMetric(name, &written)
		}
	}
	return r, failure
}

// maxNames limits the cached names, because some collectors create new descriptions each time.
const maxNames = 512

// name returns the name in a description, which only its text contains.
func (g *gatherer) name(d *prometheus.Desc) string {
	name, isCached := g.names[d]
	if isCached {
		return name
	}
	_, name, _ = strings.Cut(d.String(), `fqName: "`)
	name, _, _ = strings.Cut(name, `"`)
	if len(g.names) < maxNames {
		g.names[d] = name
	}
	return name
}

func readBootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot ID: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// sinceBoot returns the time since the boot, including time in suspend.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // a kernel before 2.6.39
	}
	return time.Duration(t.Nano())
}
