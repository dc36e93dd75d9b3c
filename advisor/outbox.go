package advisor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	// maxUnsent bounds the unsent advice, and also the unsent warnings.
	maxUnsent = 1 << 16

	// senders is the number of concurrent publishers. A stream with three replicas acknowledges after 3
	// to 5 ms, so that 32 publishers reach thousands of messages per second, far more than running jobs
	// need.
	senders = 32

	// drainTimeout bounds how long Run waits for unsent messages when it stops.
	drainTimeout = 5 * time.Second

	riskRetry = 250 * time.Millisecond // before a warning is published again
)

// outbox publishes advice and warnings in the background, so that applying events does not wait for
// acknowledgements. The messages of a job are published one after the other: its warnings, which are
// never dropped, and the newest advice. If too many warnings are unsent, addRisk blocks.
type outbox struct {
	publish func(context.Context, schemas.Event) (uint64, error)
	metrics *metrics
	log     *slog.Logger

	mu            sync.Mutex
	changed       *sync.Cond         // signals every change of the fields below
	jobs          map[string]*unsent // with unsent messages, or with one that is being published
	order         []string           // jobs with unsent messages, without those of the senders, oldest first
	risks         int                // unsent warnings
	expectedRisks int                // warnings in the state, about to be added
	closed        bool               // no message is added after this
	ended         bool               // no message is sent after this
}

// unsent are the messages of a job.
type unsent struct {
	risks  []*schemas.Risk // oldest first; the first one may be being published
	advice *schemas.Advice
}

func newOutbox(publish func(context.Context, schemas.Event) (uint64, error), m *metrics, log *slog.Logger) *outbox {
	o := &outbox{publish: publish, metrics: m, log: log, jobs: map[string]*unsent{}}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// of returns the messages of a job, to which one is added. The caller holds the lock.
func (o *outbox) of(id string) *unsent {
	u := o.jobs[id]
	if u == nil {
		u = &unsent{}
		o.jobs[id], o.order = u, append(o.order, id)
	}
	o.changed.Broadcast()
	return u
}

// addAdvice adds an advice, or replaces the unsent advice of the same job. If too many jobs have unsent
// messages, it drops the advice.
func (o *outbox) addAdvice(a *schemas.Advice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.jobs[a.JobID] == nil && len(o.jobs) >= maxUnsent {
		o.metrics.dropped.Inc()
		return
	}
	u := o.of(a.JobID)
	if u.advice != nil {
		o.metrics.replaced.Inc()
	}
	u.advice = a
}

// addRisk adds a warning or an all-clear. It blocks while too many are unsent.
func (o *outbox) addRisk(r *schemas.Risk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.risks >= maxUnsent && !o.ended {
		o.changed.Wait()
	}
	o.expectedRisks--
	o.risks++
	u := o.of(r.JobID)
	u.risks = append(u.risks, r)
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
	return o.risks + o.expectedRisks
}

// run publishes until the outbox is closed and empty, or ctx ends.
func (o *outbox) run(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { o.set(&o.ended) })()
	var all sync.WaitGroup
	for range senders {
		all.Go(func() { o.send(ctx) })
	}
	all.Wait()
}

// close makes run return after everything is sent.
func (o *outbox) close() { o.set(&o.closed) }

func (o *outbox) set(flag *bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*flag = true
	o.changed.Broadcast()
}

// send publishes messages. While NATS is unavailable it retries a warning, because the state already has it.
func (o *outbox) send(ctx context.Context) {
	for {
		id, e := o.next()
		if e == nil {
			return
		}
		_, err := o.publish(ctx, e)
		if err != nil {
			o.failed(ctx, e, err)
		}
		_, isRisk := e.(*schemas.Risk)
		if isRisk && err != nil && ctx.Err() != nil {
			return // the warning stays unsent, so that no snapshot counts it as published
		}
		if isRisk && errors.Is(err, schemas.ErrUnavailable) {
			_ = bus.Sleep(ctx, riskRetry) // the next message ends with ctx
			isRisk = false
		}
		o.sent(id, isRisk)
	}
}

// next waits for a message to publish, and returns it with its job; nil means that there will be none.
func (o *outbox) next() (id string, e schemas.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.order) == 0 && !o.ended && !(o.closed && len(o.jobs) == 0) {
		o.changed.Wait()
	}
	if len(o.order) == 0 || o.ended {
		return "", nil
	}
	id = o.order[0]
	o.order = o.order[1:]
	u := o.jobs[id]
	if len(u.risks) > 0 {
		return id, u.risks[0]
	}
	e, u.advice = u.advice, nil
	return id, e
}

// sent makes the next message of a job available, and removes its first warning if that was published.
func (o *outbox) sent(id string, isRisk bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.jobs[id]
	if isRisk {
		u.risks = u.risks[1:]
		o.risks--
	}
	if len(u.risks) > 0 || u.advice != nil {
		o.order = append(o.order, id)
	} else {
		delete(o.jobs, id)
	}
	o.changed.Broadcast()
}

// failed counts and logs an event that was not published.
func (o *outbox) failed(ctx context.Context, e schemas.Event, err error) {
	o.metrics.unpublished.Inc()
	if ctx.Err() == nil {
		o.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}
