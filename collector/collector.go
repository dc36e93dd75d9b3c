package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/spool"

	"github.com/prometheus/client_golang/prometheus"
)

// ErrNodeTaken is returned by Run if another machine publishes samples with this node name.
var ErrNodeTaken = errors.New("another collector uses this node name")

const (
	publishTimeout = 2 * time.Second // per message, including the acknowledgement
	replayInterval = time.Minute     // between checks for events of runs

	// samplesDirPrefix is the prefix of the directory of a node's samples in the spool.
	samplesDirPrefix = "samples-"
)

// Collector samples this node and publishes node.<node>.sample. If the counters of the node are
// unavailable, it publishes only the events that runs left in the spool.
type Collector struct {
	bus      *bus.Bus
	o        Options
	log      *slog.Logger
	metrics  *metrics
	gatherer *gatherer // nil: unavailable on this system
	bootID   string
	cpuModel string

	measureSpeed func() float64          // replaced in tests
	bestSpeed    atomic.Pointer[float64] // operations per second; nil: not measured
	fleet        schemas.Fleet           // this node's hardware, from its samples

	number    uint64           // of the last sample
	nameCheck <-chan nameCheck // nil: the node name is available
	queue     *spool.SampleQueue

	isPublishFailing bool // the last publish failed
	isIdentified     bool // the queue knows the cluster of its samples
	isReadFailing    bool // the last reading failed
}

// New returns a collector. It reads the node's counters once to find which are available.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) (*Collector, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Collector{
		bus:          b,
		o:            o,
		log:          log,
		metrics:      newMetrics(reg),
		measureSpeed: measureSpeed,
		fleet:        schemas.Fleet{},
		queue:        spool.OpenSamples("", log),
	}
	if c.gatherer, err = sharedGatherer(); err != nil {
		log.Info("node samples disabled", "reason", err)
		return c, nil
	}
	if len(c.gatherer.unavailable) > 0 {
		log.Info("node_exporter collectors unavailable", "collectors", c.gatherer.unavailable)
	}
	c.bootID, err = readBootID()
	return c, err
}

// Run publishes samples until ctx ends, and then the samples that still wait. It returns
// ErrNodeTaken if the log has a recent sample of another machine with this node name. Samples wait
// until that is known.
func (c *Collector) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.o.SpoolDir != "" {
		background.Go(func() { c.replayRuns(ctx) })
	}
	if c.gatherer == nil {
		<-ctx.Done()
		return nil
	}

	c.cpuModel = localCPUModel()
	c.updateSpeed()
	if speed := c.bestSpeed.Load(); speed != nil {
		c.log.Info("node speed measured", "cpu_model", c.cpuModel, "speed_operations_per_second", *speed)
	}
	background.Go(func() { c.repeatSpeed(ctx) })
	checked := make(chan nameCheck, 1)
	background.Go(func() { checked <- c.checkName(ctx) })
	c.nameCheck = checked
	if err := c.awaitNameCheck(ctx); err != nil || ctx.Err() != nil {
		return err
	}

	if c.o.SpoolDir != "" {
		dir := filepath.Join(c.o.SpoolDir, samplesDirPrefix+c.o.Node)
		c.queue = spool.OpenSamples(dir, c.log)
		defer c.queue.Close()
		c.number = max(c.number, c.queue.HighestNumber(c.bootID))
	}
	if err := c.sample(ctx); err != nil {
		return err
	}
	final, stop := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer stop()
	c.publishQueue(final, 1)
	return nil
}

// sample publishes a sample at each tick. It covers at least half an interval.
func (c *Collector) sample(ctx context.Context) error {
	previous := c.read()
	// Nodes that start together take their samples at different times, so that they do not all publish at once.
	ticker := time.NewTicker(1 + rand.N(c.o.Interval))
	defer ticker.Stop()
	select {
	case <-ticker.C:
		ticker.Reset(c.o.Interval)
	case <-ctx.Done():
		return nil
	}
	for {
		current := c.read()
		s, ok := sampleBetween(previous, current)
		if ok && current.at.Sub(previous.at) >= c.o.Interval/2 {
			c.enqueue(&s)
			previous = current
		}

		select {
		case result := <-c.nameCheck:
			if err := c.applyNameCheck(result); err != nil {
				return err
			}
		default:
		}
		c.publishQueue(ctx, c.o.SamplesPerMessage)

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// read reads the counters, and logs the first failure and the recovery.
func (c *Collector) read() nodeReading {
	start, startCPU := time.Now(), processCPUTime()
	r, err := c.gatherer.read()
	c.metrics.addReading(processCPUTime()-startCPU, time.Since(start), residentBytes())
	if err != nil {
		c.metrics.failedReadings.Inc()
	}
	switch {
	case err != nil && !c.isReadFailing:
		c.log.Warn("node counters unreadable", "error", err)
	case err == nil && c.isReadFailing:
		c.log.Info("node counters readable again")
	}
	c.isReadFailing = err != nil
	return r
}

// enqueue completes a sample and adds it to the queue. The sample contains the best known speed of
// the node, so that readers need only the last sample.
func (c *Collector) enqueue(s *schemas.Sample) {
	c.number++
	s.CPUModel, s.SpeedOperationsPerSecond = c.cpuModel, c.bestSpeed.Load()
	s.Node, s.BootID, s.Number, s.At = c.o.Node, c.bootID, c.number, time.Now().UTC()
	s.EventID = schemas.SampleID(s.Node, s.BootID, s.Number)

	previous := c.fleet[s.Node].Speed
	if best := c.fleet.Sample(s).Speed; best > 0 {
		s.SpeedOperationsPerSecond = &best
		if previous > 0 && best > previous {
			c.log.Info("higher node speed measured",
				"speed_operations_per_second", best,
				"previous_operations_per_second", previous)
		}
	}
	c.queue.Add(s)
}

// publishQueue publishes the samples that wait, oldest first, if there are at least minimum. It
// takes at most half an interval, and stops at the first failure until the next tick. It logs the
// first failure and the recovery.
func (c *Collector) publishQueue(ctx context.Context, minimum int) {
	deadline := time.Now().Add(max(c.o.Interval/2, minInterval))
	c.identify(ctx)
	err := c.queue.Publish(ctx, minimum, deadline, c.publish)
	c.metrics.setQueue(c.queue.Stats())
	switch {
	case err != nil && !c.isPublishFailing && ctx.Err() == nil:
		c.log.Warn("node samples not published", "error", err)
	case err == nil && c.isPublishFailing:
		c.log.Info("node samples published again")
	}
	c.isPublishFailing = err != nil
}

// identify informs the queue to which cluster its samples belong, at the start and after a failure.
func (c *Collector) identify(ctx context.Context) {
	if c.isIdentified && !c.isPublishFailing || !c.bus.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	cluster, err := c.bus.ClusterID(ctx)
	if err == nil {
		err = c.queue.BelongTo(cluster)
	}
	if c.isIdentified = err == nil; err != nil && ctx.Err() == nil {
		c.log.Warn("cluster of the samples not identified", "error", err)
	}
}

// publish publishes samples as one message. If the message is rejected as invalid, each sample is
// published alone, and the invalid ones are dropped.
func (c *Collector) publish(ctx context.Context, samples []*schemas.Sample) error {
	if c.nameCheck != nil || !c.bus.Connected() {
		return fmt.Errorf("publish %s: %w", samples[0].Subject(), schemas.ErrUnavailable)
	}
	publishing, cancel := context.WithTimeout(ctx, publishTimeout)
	_, err := c.bus.PublishSamples(publishing, samples)
	cancel()

	switch isInvalid := errors.Is(err, schemas.ErrInvalid); {
	case isInvalid && len(samples) == 1:
		c.metrics.droppedSamples.Inc()
		c.log.Warn("invalid node sample dropped", "sample", samples[0].EventID, "error", err)
		return nil
	case isInvalid:
		for i := range samples {
			if err := c.publish(ctx, samples[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case err == nil:
		c.metrics.publishedSamples.Add(float64(len(samples)))
	}
	return err
}

func (c *Collector) replayRuns(ctx context.Context) {
	ticker := time.NewTicker(replayInterval)
	defer ticker.Stop()
	for {
		if c.bus.Connected() {
			n, err := spool.Replay(ctx, c.o.SpoolDir, c.bus, c.log)
			c.metrics.replayedEvents.Add(float64(n))
			if err != nil && ctx.Err() == nil {
				c.log.Warn("events of earlier runs not published", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
