package collector

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	outboxLength   = 1024            // events that wait in memory
	publishTimeout = 2 * time.Second // for one event, acknowledgement included
	replayInterval = time.Second     // between attempts to publish what is spooled
)

// outbox publishes a run's events in a goroutine of its own, so that a job never
// waits for NATS. What cannot be published at once goes to the spool, and from
// there in order when the bus is back.
//
//	add ──► queue (bounded) ──► run ──► bus
//	  └ full ──► spool ◄── no bus ┘ └──► spool, replayed
type outbox struct {
	queue   chan schemas.Event
	spool   *spool
	log     *slog.Logger
	lost    atomic.Int64 // events that neither bus nor disk took
	stopped chan struct{}
}

func newOutbox(dir, job string, run uint32, log *slog.Logger) *outbox {
	return &outbox{queue: make(chan schemas.Event, outboxLength), spool: newSpool(dir, job, run), log: log, stopped: make(chan struct{})}
}

// add takes an event to publish. It never waits for the network.
func (o *outbox) add(e schemas.Event) {
	select {
	case o.queue <- e:
	default:
		o.keep(e)
	}
}

// run publishes until the queue is closed and empty, or ctx ends; then what is
// left goes to the spool. connected yields the bus once it is there.
func (o *outbox) run(ctx context.Context, connected <-chan *bus.Bus) {
	defer close(o.stopped)
	retry := time.NewTicker(replayInterval)
	defer retry.Stop()
	var b *bus.Bus
	for {
		select {
		case b = <-connected:
			connected = nil
			o.replay(ctx, b)
		case <-retry.C:
			o.replay(ctx, b)
		case e, open := <-o.queue:
			if !open {
				select {
				case b = <-connected: // it came with the last event
				default:
				}
				o.replay(ctx, b)
				o.close()
				return
			}
			o.publish(ctx, b, e)
		}
	}
}

// publish sends one event, or keeps it where an older one waits already.
func (o *outbox) publish(ctx context.Context, b *bus.Bus, e schemas.Event) {
	if b == nil || !b.Connected() || o.spool.count() > 0 || ctx.Err() != nil {
		o.keep(e)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := b.Publish(ctx, e)
	switch {
	case errors.Is(err, schemas.ErrInvalid): // repeating it cannot help
		o.lost.Add(1)
		o.log.Warn("event refused", "event", e.ID(), "error", err)
	case errors.Is(err, schemas.ErrForbidden): // a right may be missing by mistake
		o.log.Warn("event is kept, it is forbidden to tell it", "event", e.ID(), "error", err)
		o.keep(e)
	case err != nil:
		o.log.Debug("event is kept for later", "event", e.ID(), "error", err)
		o.keep(e)
	}
}

// keep writes an event to the spool. Where the disk refuses too, it is lost, and
// the first such loss is told.
func (o *outbox) keep(e schemas.Event) {
	err := o.spool.append(e)
	if err != nil && o.lost.Add(1) == 1 {
		o.log.Warn("event is lost: neither nats nor the spool takes it", "event", e.ID(), "error", err)
	}
}

// replay publishes what this run spooled.
func (o *outbox) replay(ctx context.Context, b *bus.Bus) {
	if b == nil || !b.Connected() || ctx.Err() != nil {
		return
	}
	if err := o.spool.replay(ctx, b, o.log); err != nil {
		o.log.Debug("spool waits on", "error", err)
	}
}

func (o *outbox) close() {
	if err := o.spool.close(); err != nil {
		o.log.Warn("spool is left as it is", "error", err)
	}
}

// finish ends the outbox after the last add and waits until what it has is
// published or on disk. It returns how many events wait on disk.
func (o *outbox) finish() int {
	close(o.queue)
	<-o.stopped
	return o.spool.count()
}
