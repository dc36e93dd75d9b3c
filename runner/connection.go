package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/spool"
)

var errNoBus = errors.New("no connection to NATS is configured")

// connection is the connection of a run to NATS. It connects in the background, without a time
// limit.
type connection struct {
	log       *slog.Logger
	ready     chan struct{}      // closed when bus and err are set
	bus       *bus.Bus           // nil: the connection failed
	err       error              // why it failed
	connected chan *bus.Bus      // delivers the bus once, to the outbox
	replayed  chan struct{}      // closed when the events of earlier runs are published
	events    chan schemas.Event // of the job, since subscribe: cancellations, advice and risks
	beaten    chan time.Time     // when a heartbeat was sent that has arrived
	tasks     sync.WaitGroup
}

// connect starts to connect. When it is connected, it publishes the events that earlier runs left
// in the spool directory.
func connect(
	ctx context.Context, dial func(context.Context) (*bus.Bus, error), spoolDir string, log *slog.Logger,
) *connection {
	c := &connection{
		log:       log,
		ready:     make(chan struct{}),
		connected: make(chan *bus.Bus, 1),
		replayed:  make(chan struct{}),
		events:    make(chan schemas.Event, 16),
		beaten:    make(chan time.Time, 1),
	}
	if dial == nil {
		c.err = errNoBus
		close(c.ready)
		return c
	}
	c.tasks.Go(func() {
		c.bus, c.err = dial(ctx)
		close(c.ready)
		if c.err != nil {
			return
		}
		c.connected <- c.bus
		defer close(c.replayed)
		if _, err := spool.Replay(ctx, spoolDir, c.bus, log); err != nil {
			log.Debug("events of earlier runs not published", "error", err)
		}
	})
	return c
}

// live returns the bus if it is connected now, otherwise nil.
func (c *connection) live() *bus.Bus {
	select {
	case <-c.ready:
	default:
		return nil
	}
	if c.bus == nil || !c.bus.Connected() {
		return nil
	}
	return c.bus
}

// finish waits until the events of earlier runs are published, if NATS is connected.
func (c *connection) finish(ctx context.Context) {
	if c.live() == nil {
		return
	}
	select {
	case <-c.replayed:
	case <-ctx.Done():
	}
}

// await waits for the bus. It returns an error if the connection failed or ctx ends first.
func (c *connection) await(ctx context.Context) (*bus.Bus, error) {
	select {
	case <-c.ready:
		return c.bus, c.err
	case <-ctx.Done():
		return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "NATS is unreachable"}
	}
}

// subscribe receives cancellations, advice and risks of the job. Cancellations are read from the
// log, so that one is received even if NATS is connected later; the first one can be the last
// cancellation of an earlier run. Advice and risks are received only while they are published.
func (c *connection) subscribe(ctx context.Context, job string) {
	c.follow(ctx, c.events, job, schemas.EventCancelled)
	for _, kind := range []string{schemas.EventAdvice, schemas.EventRisk} {
		c.tasks.Go(func() { c.listen(ctx, schemas.JobSubject(job, kind)) })
	}
}

// follow sends the last event of each kind of a job to a channel, and the later ones, until its context
// ends.
func (c *connection) follow(ctx context.Context, to chan<- schemas.Event, job string, kinds ...string) {
	o := bus.FollowOptions{Stream: schemas.StreamJob, LastPerSubject: true}
	for _, kind := range kinds {
		o.Subjects = append(o.Subjects, schemas.JobSubject(job, kind))
	}
	c.tasks.Go(func() {
		b, err := c.await(ctx)
		if err != nil {
			return
		}
		// Follow ends with its context, and its handler returns no error.
		_ = b.Follow(ctx, o, func(r bus.Record) error {
			select {
			case to <- r.Event:
			case <-ctx.Done():
			}
			return nil
		})
	})
}

// listen receives the events of a subject. It drops them while the channel is full.
func (c *connection) listen(ctx context.Context, subject string) {
	b, err := c.await(ctx)
	if err != nil {
		return
	}
	err = b.Listen(ctx, subject, func(e schemas.Event) {
		select {
		case c.events <- e:
		default:
		}
	})
	if err != nil && ctx.Err() == nil {
		c.log.Warn("predictions for the job are not received", "subject", subject, "error", err)
	}
}

// beat sends a heartbeat in the background, if NATS is connected, and reports its time when the server
// has it. It gives up before the next one.
func (c *connection) beat(ctx context.Context, e *schemas.Alive) {
	b := c.live()
	if b == nil {
		return
	}
	sentAt := time.Now()
	c.tasks.Go(func() {
		within, cancel := context.WithTimeout(ctx, schemas.Heartbeat)
		defer cancel()
		if err := b.Notify(within, e); err != nil {
			c.log.Debug("heartbeat not sent", "error", err)
			return
		}
		select {
		case c.beaten <- sentAt:
		default: // the earlier time is close
		}
	})
}
