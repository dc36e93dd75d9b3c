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
	// maxUnsent bounds the advice that waits, and the warnings that wait.
	maxUnsent = 1 << 16

	// adviceSenders is how many pieces of advice are published at once. A stream of
	// three replicas acknowledges after 3 to 5 ms; of 32 at once it takes thousands a
	// second, far more than jobs that run need.
	adviceSenders = 32

	// drainTimeout bounds how long a stop waits for what is unsent.
	drainTimeout = 5 * time.Second

	riskRetry = 250 * time.Millisecond // before a warning is published again
)

// outbox publishes advice and warnings beside the fold, which does not wait for the
// acknowledgements. Of a job's unsent advice it keeps the newest. Warnings are never
// dropped and keep their order: where too many wait, the fold waits too.
type outbox struct {
	publish func(context.Context, schemas.Event) (uint64, error)
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex
	changed *sync.Cond                 // something was added or sent, or the outbox was closed
	advice  map[string]*schemas.Advice // unsent, by job; at most maxUnsent
	sending map[string]bool            // jobs whose advice is being published
	order   []string                   // jobs in advice and not in sending, oldest first
	risks   []*schemas.Risk            // unsent or being published, oldest first
	expects int                        // warnings that the state has and addRisk will bring
	closed  bool                       // nothing is added any more
	ended   bool                       // nothing is sent any more
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

// addAdvice takes an advice in place of an older one of the same job.
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

// addRisk takes a warning or an all-clear. It waits while too many are unsent.
func (o *outbox) addRisk(r *schemas.Risk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.risks) >= maxUnsent && !o.ended {
		o.changed.Wait()
	}
	o.expects--
	o.risks = append(o.risks, r)
	o.changed.Broadcast()
}

// expectRisk notes that the state has a warning which addRisk is about to take.
func (o *outbox) expectRisk() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expects++
}

// unsentRisks returns how many warnings the state has that are not in the event log.
func (o *outbox) unsentRisks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.risks) + o.expects
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

// close lets run return when all is sent.
func (o *outbox) close() { o.set(&o.closed) }

// end lets run return at once.
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

// nextAdvice waits for an advice that may be published; nil: there will be none.
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

// sentAdvice lets the next advice of a job follow: two at once could change places.
func (o *outbox) sentAdvice(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sending, id)
	if o.advice[id] != nil {
		o.order = append(o.order, id)
	}
	o.changed.Broadcast()
}

// sendRisks publishes warnings one after the other. One that the log does not take is
// tried again, because the state says that the job was warned about.
func (o *outbox) sendRisks(ctx context.Context) {
	for {
		r := o.firstRisk()
		if r == nil {
			return
		}
		_, err := o.publish(ctx, r)
		if errors.Is(err, schemas.ErrUnavailable) && ctx.Err() == nil {
			o.failed(ctx, r, err)
			pause(ctx, riskRetry)
			continue
		}
		if err != nil {
			o.failed(ctx, r, err)
		}
		o.mu.Lock()
		o.risks = o.risks[1:]
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// firstRisk waits for the oldest warning; nil: there will be none.
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
