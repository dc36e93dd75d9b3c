package collector

import (
	"context"
	"log/slog"
	"sync"

	"courier/bus"
	"courier/schemas"
)

// link is a run's way to the bus. It connects in the background, for as long as
// it takes, and hands the bus to those who wait for it.
type link struct {
	log       *slog.Logger
	ready     chan struct{} // closed when connecting has come to an end
	bus       *bus.Bus      // after ready; nil: there is none
	err       error         // after ready: why there is none
	connected chan *bus.Bus // yields the bus once, for the outbox
	replayed  chan struct{} // closed when the spool of earlier runs was looked through
	cancelled chan *schemas.Ended
	advice    chan *schemas.Advice
	risks     chan *schemas.Risk
	work      sync.WaitGroup
}

// connect begins to connect. Once it succeeds, what earlier runs left in the
// spool is published.
func connect(ctx context.Context, dial func(context.Context) (*bus.Bus, error), spoolDir string, log *slog.Logger) *link {
	l := &link{log: log, ready: make(chan struct{}), connected: make(chan *bus.Bus, 1), replayed: make(chan struct{}), cancelled: make(chan *schemas.Ended), advice: make(chan *schemas.Advice, 16), risks: make(chan *schemas.Risk, 16)}
	if dial == nil {
		l.err = errNoBus
		close(l.ready)
		return l
	}
	l.work.Go(func() {
		l.bus, l.err = dial(ctx)
		close(l.ready)
		if l.err != nil {
			return
		}
		l.connected <- l.bus
		defer close(l.replayed)
		if _, err := ReplaySpool(ctx, spoolDir, l.bus, log); err != nil {
			log.Debug("spool of earlier runs waits on", "error", err)
		}
	})
	return l
}

// wait returns when everything that the link started has ended, which needs the
// end of its ctx.
func (l *link) wait() { l.work.Wait() }

// finish lets a replay of earlier runs that is under way come to its end.
func (l *link) finish(ctx context.Context) {
	select {
	case <-l.ready:
	default:
		return
	}
	if l.bus == nil || !l.bus.Connected() {
		return
	}
	select {
	case <-l.replayed:
	case <-ctx.Done():
	}
}

// await returns the bus, or why there is none before ctx ends.
func (l *link) await(ctx context.Context) (*bus.Bus, error) {
	select {
	case <-l.ready:
		return l.bus, l.err
	case <-ctx.Done():
		return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats is not reached"}
	}
}

// watch follows what others say about the job. That it is cancelled is read from
// the log, so that it is heard however late the bus is there; the last cancel of
// an earlier run comes first then. A prediction is news of the moment.
func (l *link) watch(ctx context.Context, job string) {
	l.work.Go(func() {
		b, err := l.await(ctx)
		if err != nil {
			return
		}
		o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{schemas.JobSubject(job, schemas.EventCancelled)}, LastPerSubject: true}
		// Follow ends with its ctx, and its handler has no error.
		_ = b.Follow(ctx, o, func(r bus.Record) error {
			if cancel, ok := r.Event.(*schemas.Ended); ok {
				select {
				case l.cancelled <- cancel:
				case <-ctx.Done():
				}
			}
			return nil
		})
	})
	l.work.Go(func() { listen(ctx, l, schemas.JobSubject(job, schemas.EventAdvice), l.advice) })
	l.work.Go(func() { listen(ctx, l, schemas.JobSubject(job, schemas.EventRisk), l.risks) })
}

// listen hands on what is said on a subject; what nobody takes is dropped.
func listen[E schemas.Event](ctx context.Context, l *link, subject string, to chan<- E) {
	b, err := l.await(ctx)
	if err != nil {
		return
	}
	err = b.Listen(ctx, subject, func(e schemas.Event) {
		if said, ok := e.(E); ok {
			select {
			case to <- said:
			default:
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		l.log.Warn("predictions of the job are not heard", "subject", subject, "error", err)
	}
}

// notify sends an event that nobody keeps, if the bus is there.
func (l *link) notify(e schemas.Event) {
	select {
	case <-l.ready:
	default:
		return
	}
	if l.bus == nil || !l.bus.Connected() {
		return
	}
	if err := l.bus.Notify(e); err != nil {
		l.log.Debug("event is not sent", "subject", e.Subject(), "error", err)
	}
}
