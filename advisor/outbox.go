package advisor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"courier/schemas"
)

const (
	// maxUnsent bounds the unsent advice, and also the unsent warnings.
	maxUnsent = 1 << 16

	// adviceSenders is the number of concurrent publishers of advice. A stream with three
	// replicas acknowledges after 3 to 5 ms, so that 32 publishers reach thousands of messages
	// per second, far more than running jobs need.
	adviceSenders = 32

	// drainTimeout bounds how long Run waits for unsent messages when it stops.
	drainTimeout = 5 * time.Second

	riskRetry = 250 * time.Millisecond // before a warning is published again
)

// outbox publishes advice and warnings in the background, so that applying events does not wait for
// acknowledgements. It keeps only the newest unsent advice of each job. Warnings are never dropped
// and keep their order; if too many are unsent, addRisk blocks.
type outbox struct {
	publish func(context.Context, schemas.Event) (uint64, error)
	metrics *metrics
	log     *slog.Logger

	mu            sync.Mutex
	changed       *sync.Cond                 // signals every change of the fields below
	advice        map[string]*schemas.Advice // unsent, by job; at most maxUnsent
	sending       map[string]bool            // jobs whose advice is being published
	order         []string                   // jobs in advice and not in sending, oldest first
	risks         []*schemas.Risk            // unsent or being published, oldest first
	expectedRisks int                        // warnings in the state, about to be added
	closed        bool                       // no message is added after this
	ended         bool                       // no message is sent after this
}

func newOutbox(
	publish func(context.Context, schemas.Event) (uint64, error), m *metrics, log *slog.Logger,
) *outbox {
	o := &outbox{
		publish: publish, metrics: m, log: log,
		advice: map[string]*schemas.Advice{}, sending: map[string]bool{},
	}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// addAdvice adds an advice, or replaces the unsent advice of the same job.
func (o *outbox) addAdvice(a *schemas.Advice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.advice[a.JobID] != nil {
		o.metrics.replaced.Inc()
	} else {
		if len(o.order) >= maxUnsent {
			o.metrics.dropped.Inc()
			delete(o.advice, o.order[0])
			o.order = o.order[1:]
		}
		if !o.sending[a.JobID] {
			o.order = append(o.order, a.JobID)
		}
	}
	o.advice[a.JobID] = a
	o.changed.Broadcast()
}

// addRisk adds a warning or an all-clear. It blocks while too many are unsent.
func (o *outbox) addRisk(r *schemas.Risk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.risks) >= maxUnsent && !o.ended {
		o.changed.Wait()
	}
	o.expectedRisks--
	o.risks = append(o.risks, r)
	o.changed.Broadcast()
}

// expectRisk records that the state has a warning which is about to be passed to addRisk, so that
// no snapshot is taken before the warning is published.
func (o *outbox) expectRisk() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expectedRisks++
}

// unsentRisks returns the number of warnings that are in the state but not in the event log.
func (o *outbox) unsentRisks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.risks) + o.expectedRisks
}

// run publishes until the outbox is closed and empty, or ctx ends.
func (o *outbox) run(ctx context.Context) {
	defer context.AfterFunc(ctx, o.end)()
	var senders sync.WaitGroup
	senders.Go(func() { o.sendRisks(ctx) })
	for range adviceSenders {
		senders.Go(func() { o.sendAdvice(ctx) })
	}
	senders.Wait()
}

// close makes run return after everything is sent.
func (o *outbox) close() { o.set(&o.closed) }

// end makes run return immediately.
func (o *outbox) end() { o.set(&o.ended) }

func (o *outbox) set(flag *bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*flag = true
	o.changed.Broadcast()
}

func (o *outbox) sendAdvice(ctx context.Context) {
	for {
		a := o.nextAdvice()
		if a == nil {
			return
		}
		if _, err := o.publish(ctx, a); err != nil {
			o.failed(ctx, a, err)
		}
		o.sentAdvice(a.JobID)
	}
}

// nextAdvice waits for an advice to publish; nil means that there will be none.
func (o *outbox) nextAdvice() *schemas.Advice {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended {
		if len(o.order) > 0 {
			id := o.order[0]
			a := o.advice[id]
			o.order = o.order[1:]
			delete(o.advice, id)
			o.sending[id] = true
			return a
		}
		if o.closed && len(o.advice) == 0 {
			return nil
		}
		o.changed.Wait()
	}
	return nil
}

// sentAdvice makes the next advice of the job available. Only one advice of a job is published at a
// time, so that the order is preserved.
func (o *outbox) sentAdvice(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sending, id)
	if o.advice[id] != nil {
		o.order = append(o.order, id)
	}
	o.changed.Broadcast()
}

// sendRisks publishes warnings one after the other. While NATS is unavailable it retries, because
// the state already has the warning.
func (o *outbox) sendRisks(ctx context.Context) {
	for {
		r := o.firstRisk()
		if r == nil {
			return
		}
		_, err := o.publish(ctx, r)
		if err != nil {
			o.failed(ctx, r, err)
		}
		if err != nil && ctx.Err() != nil {
			return // the warning stays unsent, so that no snapshot counts it as published
		}
		if errors.Is(err, schemas.ErrUnavailable) {
			pause(ctx, riskRetry)
			continue
		}
		o.mu.Lock()
		o.risks = o.risks[1:]
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// firstRisk waits for the oldest warning; nil means that there will be none.
func (o *outbox) firstRisk() *schemas.Risk {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended {
		if len(o.risks) > 0 {
			return o.risks[0]
		}
		if o.closed {
			return nil
		}
		o.changed.Wait()
	}
	return nil
}

// failed counts and logs an event that was not published.
func (o *outbox) failed(ctx context.Context, e schemas.Event, err error) {
	o.metrics.unpublished.Inc()
	if ctx.Err() == nil {
		o.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
