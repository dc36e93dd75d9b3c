package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Errors of this room.
var (
	// ErrNodeTaken is returned by Run when another machine publishes samples
	// under this node's name.
	ErrNodeTaken = errors.New("another live collector has this node's name")
	// ErrSpoolFull means that a run's spool file has reached its bound.
	ErrSpoolFull = errors.New("spool file is full")

	errNoBus = errors.New("no bus is configured")
)

// Options says what a Collector samples.
type Options struct {
	Node     string        // name of this node; default schemas.LocalNodeName
	Interval time.Duration // between samples, 100 ms to 1 h; default 2 s, as in the paper (Courier, ICPE 2021)
	// NodeExporterURL is where a node_exporter that runs on this node serves its
	// metrics; "": they are gathered in this process.
	NodeExporterURL string

	// SamplesPerMessage is how many samples are sent together, 1 to 100; default 1. A
	// sample waits for the others of its message.
	SamplesPerMessage int

	// Alone says that the process does nothing else: what only its start, or a
	// measurement of the node's speed, needed is given back (Shed).
	Alone bool

	// SpoolDir keeps samples while the bus is away, and holds what runs on this node
	// left, whose events are published; "": samples wait in memory, in which there
	// are ten minutes of them at the default interval.
	SpoolDir string
}

const (
	defaultInterval  = 2 * time.Second
	shortestInterval = 100 * time.Millisecond
	longestInterval  = time.Hour

	// samplesDir begins the name of a folder in the spool: that of a node's samples.
	samplesDir = "samples-"

	// sweepInterval is the pause between looks into the spool.
	sweepInterval = time.Minute
)

// Collector samples this node and publishes node.<node>.sample. Where node
// metrics are not available it only publishes what runs left in the spool.
type Collector struct {
	b        *bus.Bus
	o        Options
	log      *slog.Logger
	metrics  *metrics
	source   source // nil: no node metrics on this system
	boot     string
	cpuModel string
	gauge    func() float64          // measureSpeed
	speed    atomic.Pointer[float64] // operations per second, the best that was measured; nil: not measured
	fleet    schemas.Fleet           // what is known of this node, by its last stored sample and since

	number  uint64         // of the newest sample
	asked   chan admission // nil: the node's name is ours
	backlog *backlog       // taken and not published
	away    bool           // publishing failed last time
	blind   bool           // reading failed last time
}

// source reads the node's counters: in this process, or from a node_exporter.
type source interface {
	read(ctx context.Context) (reading, error)
}

var (
	_ source = (*scraper)(nil)
	_ source = (*gatherer)(nil)
)

// New returns a collector. Without a NodeExporterURL it reads the node's metrics once to see which there
// are; the error names the option that is wrong.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) (*Collector, error) {
	if o.Node == "" {
		name, err := schemas.LocalNodeName()
		if err != nil {
			return nil, err
		}
		o.Node = name
	}
	if !schemas.ValidToken(o.Node) {
		return nil, schemas.Invalid("node", "%q is not a name of 1 to %d of a-z, 0-9, _ and -", o.Node, schemas.MaxTokenLength)
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Interval < shortestInterval || o.Interval > longestInterval {
		return nil, schemas.Invalid("interval", "%s is not between %s and %s", o.Interval, shortestInterval, longestInterval)
	}
	o.SamplesPerMessage = cmp.Or(o.SamplesPerMessage, 1)
	if o.SamplesPerMessage < 1 || o.SamplesPerMessage > mostTaken {
		return nil, schemas.Invalid("samples_per_message", "%d is not between 1 and %d", o.SamplesPerMessage, mostTaken)
	}
	c := &Collector{b: b, o: o, log: log, metrics: newMetrics(reg), gauge: measureSpeed, fleet: schemas.Fleet{}}
	c.backlog = openBacklog("", log, c.metrics)
	if err := c.open(); err != nil {
		return nil, err
	}
	return c, nil
}

// open finds the source of the node's counters, and who we are.
func (c *Collector) open() (err error) {
	if c.o.NodeExporterURL != "" {
		s, err := newScraper(c.o.NodeExporterURL)
		if err != nil {
			return err
		}
		c.source = s
	} else {
		g, err := theGatherer()
		if err != nil {
			c.log.Info("node samples are off", "reason", err)
			return nil
		}
		if len(g.leftOut) > 0 {
			c.log.Info("node collectors left out", "collectors", g.leftOut)
		}
		c.source = g
	}
	c.boot, err = bootID()
	return err
}

// Run publishes samples until ctx ends, and then what is left of them. It returns
// ErrNodeTaken if another machine has this node's name, as far as the clocks of
// server and node agree; samples wait until the event log has told that.
func (c *Collector) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.o.SpoolDir != "" {
		beside.Go(func() { c.sweep(ctx) })
	}
	if c.source == nil {
		<-ctx.Done()
		return nil
	}
	c.cpuModel = localCPUModel()
	if c.measure(); c.speed.Load() != nil {
		c.log.Info("node measured", "cpu_model", c.cpuModel, "speed_operations_per_second", *c.speed.Load())
	}
	beside.Go(func() { c.measureAgain(ctx) })
	asked := make(chan admission, 1)
	beside.Go(func() { asked <- c.ask(ctx) })
	c.asked = asked
	if err := c.wait(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if c.o.SpoolDir != "" {
		c.backlog = openBacklog(filepath.Join(c.o.SpoolDir, samplesDir+c.o.Node), c.log, c.metrics)
		defer c.backlog.close()
		c.number = max(c.number, c.backlog.newest(c.boot))
	}
	if err := c.sample(ctx); err != nil {
		return err
	}
	final, stop := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer stop()
	c.flush(final, 1)
	return nil
}

// sample takes a sample at each tick and publishes what it has. What would cover
// less than half an interval, as at the start, is left to the next tick.
func (c *Collector) sample(ctx context.Context) error {
	before, _ := c.read(ctx) // a first reading that failed makes the first sample later
	if !awaitPhase(ctx, c.o.Node, c.o.Interval) {
		return nil
	}
	ticker := time.NewTicker(c.o.Interval)
	defer ticker.Stop()
	for {
		after, err := c.read(ctx)
		c.note(ctx, err)
		switch s, ok := sampleBetween(before, after); {
		case err != nil:
		case before.at.IsZero():
			before = after
		case ok && after.at.Sub(before.at) >= c.o.Interval/2:
			c.keep(&s)
			before = after
		}
		select {
		case a := <-c.asked:
			if err := c.admit(a); err != nil {
				return err
			}
		default:
		}
		c.flush(ctx, c.o.SamplesPerMessage)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// read reads the node's counters and measures what that costs.
func (c *Collector) read(ctx context.Context) (reading, error) {
	begin, cpu := time.Now(), processCPU()
	r, err := c.source.read(ctx)
	c.metrics.cost(processCPU()-cpu, time.Since(begin), residentBytes())
	if err != nil {
		return reading{}, err
	}
	return r, nil
}

// note counts readings that fail, and tells the first of them and the end.
func (c *Collector) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.metrics.failed.Inc()
		if !c.blind {
			c.log.Warn("node samples are missing", "error", err)
		}
	}
	if err == nil && c.blind {
		c.log.Info("node samples are taken again")
	}
	c.blind = err != nil
}

// keep completes a sample and queues it. It tells the best speed that is known of
// the node, so that who reads the newest sample alone knows it, too.
func (c *Collector) keep(s *schemas.Sample) {
	c.number++
	s.CPUModel, s.SpeedOperationsPerSecond = c.cpuModel, c.speed.Load()
	s.Node, s.BootID, s.Number, s.At = c.o.Node, c.boot, c.number, time.Now().UTC()
	s.EventID = schemas.SampleID(s.Node, s.BootID, s.Number)
	before := c.fleet[s.Node].Speed
	if known := c.fleet.Sample(s).Speed; known > 0 {
		s.SpeedOperationsPerSecond = &known
		if before > 0 && known > before {
			c.log.Info("node measured faster", "speed_operations_per_second", known, "before_operations_per_second", before)
		}
	}
	c.backlog.add(s)
}

// flush publishes what waits, oldest first, if there is as much as least, for at
// most half an interval, and stops at the first failure; the next tick goes on. An
// outage is told once, and its end.
func (c *Collector) flush(ctx context.Context, least int) {
	err := c.backlog.publish(ctx, least, time.Now().Add(max(c.o.Interval/2, shortestInterval)), c.publish)
	switch {
	case err != nil && !c.away && ctx.Err() == nil:
		c.log.Warn("node samples wait", "error", err)
	case err == nil && c.away:
		c.log.Info("node samples are published again")
	}
	c.away = err != nil
}

// publish sends samples as one message. Where one is refused each goes alone, and
// that one is dropped: repeating it cannot help.
func (c *Collector) publish(ctx context.Context, samples []*schemas.Sample) error {
	if c.asked != nil || !c.b.Connected() {
		return fmt.Errorf("publish %s: %w", samples[0].Subject(), schemas.ErrUnavailable)
	}
	trying, cancel := context.WithTimeout(ctx, publishTimeout)
	_, err := c.b.PublishSamples(trying, samples)
	cancel()
	switch refused := errors.Is(err, schemas.ErrInvalid); {
	case refused && len(samples) == 1:
		c.metrics.dropped.Inc()
		c.log.Warn("node sample is refused", "sample", samples[0].EventID, "error", err)
		return nil
	case refused:
		for i := range samples {
			if err := c.publish(ctx, samples[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case err == nil:
		c.metrics.published.Add(float64(len(samples)))
	}
	return err
}

// sweep publishes what runs on this node left in the spool, now and then.
func (c *Collector) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if c.b.Connected() {
			n, err := ReplaySpool(ctx, c.o.SpoolDir, c.b, c.log)
			c.metrics.replayed.Add(float64(n))
			if err != nil && ctx.Err() == nil {
				c.log.Warn("spool waits on", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
