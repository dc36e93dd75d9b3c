package spool

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	maxQueued      = 1024            // events in memory
	publishTimeout = 2 * time.Second // per event, including the acknowledgement
	replayInterval = time.Second     // between attempts to publish the spool file
)

// Outbox publishes the events of one run in its own goroutine, so that a job never waits for
// NATS. Events that cannot be published at once go to the run's spool file, and are published
// from there when NATS is reachable. Events keep the order of Add: an event in the spool file
// is older than every event in the queue.
//
//	Add ──► queue (bounded) ──► Run ──► bus
//	             │ full          └ NATS unreachable, or older events in the spool file
//	             └───► spool file ◄┘
//
// Run and Finish are called once each. All other methods are safe for concurrent use.
type Outbox struct {
	file      *runFile
	log       *slog.Logger
	published atomic.Int64
	lost      atomic.Int64  // events that neither NATS nor the disk accepted
	isOfNode  bool          // its events are samples, which are dropped if NATS is of a different cluster
	hasLeft   bool          // the cluster of its events was replaced; logged once
	checked   uint64        // Bus.Connections when NATS was last found to be of the cluster of its events; 0: never
	changed   chan struct{} // signals a change of queue or closed; capacity 1
	stopped   chan struct{} // closed when Run returns

	mu     sync.Mutex // held during a write to the spool file, never during a publish
	queue  []schemas.Event
	closed bool // Finish was called, so no event follows
}

// NewOutbox returns the outbox of a run. Its spool file is in dir, and is created only when an
// event cannot be published. If no cluster is ever reached, the events wait for the one at the address
// (bus.Bus.Address), or for any if it is empty.
func NewOutbox(dir, address, job string, run uint32, log *slog.Logger) *Outbox {
	return &Outbox{
		file:    newRunFile(dir, address, job, run),
		log:     log,
		changed: make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
}

// NewSampleOutbox returns an outbox for the samples of this node. If NATS is of a different cluster
// after an outage, it drops the samples that waited.
func NewSampleOutbox(dir string, log *slog.Logger) *Outbox {
	o := NewOutbox(dir, "", "samples", uint32(time.Now().Unix()), log)
	o.isOfNode = true
	return o
}

// Published returns the number of published events.
func (o *Outbox) Published() int64 { return o.published.Load() }

// Lost returns the number of events that neither NATS nor the disk accepted.
func (o *Outbox) Lost() int64 { return o.lost.Load() }

// WaitingSince returns the timestamp of the oldest event that waits; zero if none does.
func (o *Outbox) WaitingSince() time.Time {
	if at := o.file.waitingSince(); !at.IsZero() {
		return at
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return time.Time{}
	}
	return o.queue[0].Stamped().At
}

// Path returns the path of the run's spool file. The file may not exist.
func (o *Outbox) Path() string { return o.file.location() }

// Add queues events for publishing; samples that are added together form one message. It never
// waits for the network: if the queue is full, its oldest events go to the spool file.
func (o *Outbox) Add(events ...schemas.Event) {
	o.mu.Lock()
	o.queue = append(o.queue, events...)
	for len(o.queue) > maxQueued {
		o.spool(o.queue[0])
		o.dequeue()
	}
	o.mu.Unlock()
	o.notify()
}

// dequeue removes the oldest event from the queue. The caller holds the mutex.
func (o *Outbox) dequeue() {
	o.queue[0] = nil
	o.queue = o.queue[1:]
}

func (o *Outbox) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Run publishes events until Finish is called and the queue is empty. After ctx has ended,
// events go to the spool file. The channel connected delivers the bus once it is connected.
func (o *Outbox) Run(ctx context.Context, connected <-chan *bus.Bus) {
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
		case <-o.changed:
			if !o.publishQueue(ctx, b) {
				continue
			}
			select {
			case b = <-connected: // it was connected at the same time as the last event
			default:
			}
			o.replay(ctx, b)
			if err := o.file.close(); err != nil {
				o.log.Warn("spool file not closed", "error", err)
			}
			return
		}
	}
}

// publishQueue empties the queue, and reports whether the outbox is closed.
func (o *Outbox) publishQueue(ctx context.Context, b *bus.Bus) (isClosed bool) {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			isClosed = o.closed
			o.mu.Unlock()
			return isClosed
		}
		oldest := slices.Clone(o.queue[:messageLength(o.queue)])
		o.mu.Unlock()
		o.remove(oldest, o.publish(ctx, b, oldest))
	}
}

// remove removes the oldest events from the queue, and spools them unless they are settled, which
// means published or permanently rejected. If Add has moved an event to the spool file in the
// meantime, it stays there, and NATS drops the duplicate by its message ID.
func (o *Outbox) remove(oldest []schemas.Event, isSettled bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range oldest {
		if len(o.queue) == 0 || o.queue[0] != e {
			continue
		}
		if !isSettled {
			o.spool(e)
		}
		o.dequeue()
	}
}

// publish reports whether the events of a message are settled. They wait while older ones are in
// the spool file, and after each connection until replay has found that NATS is of their cluster.
func (o *Outbox) publish(ctx context.Context, b *bus.Bus, message []schemas.Event) (isSettled bool) {
	if b == nil || !b.Connected() || o.checked != b.Connections() || o.file.waiting() > 0 || ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()

	n, err := publishAll(ctx, b, message, o.log)
	o.published.Add(int64(n))
	switch {
	case err == nil:
		o.lost.Add(int64(len(message) - n)) // a retry would be rejected as well
	case errors.Is(err, schemas.ErrForbidden):
		// The permission may be missing by mistake, so a retry can succeed.
		o.log.Warn("event is forbidden and spooled", "event", message[0].ID(), "error", err)
	default:
		o.log.Debug("event is spooled", "event", message[0].ID(), "error", err)
	}
	return err == nil
}

// spool writes an event to the spool file. If that fails, the event is lost, and the first loss
// is logged. The caller holds the mutex, which preserves the order of events.
func (o *Outbox) spool(e schemas.Event) {
	err := o.file.append(e)
	if err != nil && o.lost.Add(1) == 1 {
		o.log.Warn("event lost: NATS and the spool are unavailable", "event", e.ID(), "error", err)
	}
}

func (o *Outbox) replay(ctx context.Context, b *bus.Bus) {
	if b == nil || !b.Connected() || ctx.Err() != nil {
		return
	}
	connections := b.Connections()
	if o.checked == connections && o.file.waiting() == 0 {
		return
	}
	identifying, cancel := context.WithTimeout(ctx, publishTimeout)
	cluster, err := b.ClusterID(identifying)
	cancel()
	switch {
	case err != nil:
	case o.file.cluster == "":
		err = o.file.belongTo(cluster)
	case o.file.cluster != cluster && o.isOfNode:
		var dropped int
		dropped, err = o.file.drop()
		o.log.Warn("samples of a different cluster dropped", "samples", dropped)
		o.lost.Add(int64(dropped))
		err = errors.Join(err, o.file.belongTo(cluster))
	case o.file.cluster != cluster:
		if !o.hasLeft {
			o.log.Warn("spooled events not published: NATS is now of a different cluster",
				"spool", o.file.location(), "events", o.file.waiting())
		}
		o.hasLeft = true
		return
	}
	if err == nil {
		o.checked = connections
		var published int
		published, err = o.file.replay(ctx, b, o.log)
		o.published.Add(int64(published))
	}
	if err != nil {
		o.log.Debug("spool not replayed", "error", err)
	}
}

// Finish waits until Run has published or spooled each event, and returns the number of events
// in the spool file. No Add may follow.
func (o *Outbox) Finish() int {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.notify()
	<-o.stopped
	return o.file.waiting()
}
