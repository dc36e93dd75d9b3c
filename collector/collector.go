package collector

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
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
	stopTimeout    = 2 * time.Second // to publish the last samples
	replayInterval = time.Minute     // between checks for events of runs
	retryInterval  = time.Second     // between attempts to publish samples of an earlier process
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

	number    uint64         // of the last sample
	nameCheck chan nameCheck // of capacity 1
	outbox    *spool.Outbox
	message   []schemas.Event // samples that wait until their message is full

	isReadFailing bool // the last reading failed
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
		measureSpeed: measureSpeed,
		fleet:        schemas.Fleet{},
		nameCheck:    make(chan nameCheck, 1),
		outbox:       spool.NewSampleOutbox(o.samplesDir(), log),
	}
	c.metrics = newMetrics(reg, c.outbox)
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
	background.Go(func() { c.replayRuns(ctx) })
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

	connected := make(chan *bus.Bus, 1)
	background.Go(func() { c.connect(ctx, connected) })
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	background.Go(func() { c.outbox.Run(publishing, connected) })
	err := c.sample(ctx)
	defer time.AfterFunc(stopTimeout, stop).Stop()
	c.outbox.Add(c.message...)
	c.outbox.Finish()
	return err
}

// connect checks the node name, publishes the samples that an earlier process has left, and then
// lets the outbox publish.
func (c *Collector) connect(ctx context.Context, connected chan<- *bus.Bus) {
	checked := c.checkName(ctx)
	c.nameCheck <- checked
	if checked.err != nil || ctx.Err() != nil { // the name is taken, or not known to be free
		return
	}
	retry := time.NewTicker(retryInterval)
	defer retry.Stop()
	for {
		_, err := spool.Replay(ctx, c.o.samplesDir(), c.bus, c.log)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("samples of an earlier process not published", "error", err)
		}
		if !errors.Is(err, schemas.ErrUnavailable) {
			connected <- c.bus
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
	}
}

// sample publishes a sample at each tick. It covers at least half an interval.
func (c *Collector) sample(ctx context.Context) error {
	// No earlier sample of this boot has a higher number, because samples cannot be taken faster.
	c.number = uint64(sinceBoot() / minInterval)
	previous := c.read()
	// Nodes that start together take their samples at different times, so that they do not all publish at once.
	ticker := time.NewTicker(1 + rand.N(c.o.Interval))
	defer ticker.Stop()
	for isFirst := true; ; {
		select {
		case <-ctx.Done():
			return nil
		case result := <-c.nameCheck:
			if err := c.applyNameCheck(result); err != nil {
				return err
			}
			continue
		case <-ticker.C:
		}
		if isFirst {
			ticker.Reset(c.o.Interval)
			isFirst = false
		}
		current := c.read()
		s, ok := sampleBetween(previous, current)
		if ok && current.at.Sub(previous.at) >= c.o.Interval/2 {
			c.enqueue(&s)
			previous = current
		}
	}
}

// read reads the counters, and logs the first failure and the recovery.
func (c *Collector) read() nodeReading {
	r, err := c.gatherer.read()
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

// enqueue completes a sample, and publishes it when its message is full. The sample contains the best
// known speed of the node, so that readers need only the last sample.
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
	if c.message = append(c.message, s); len(c.message) >= c.o.SamplesPerMessage {
		c.outbox.Add(c.message...)
		c.message = nil
	}
}

func (c *Collector) replayRuns(ctx context.Context) {
	ticker := time.NewTicker(replayInterval)
	defer ticker.Stop()
	for {
		if c.bus.Connected() {
			_, err := spool.Replay(ctx, c.o.SpoolDir, c.bus, c.log)
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
