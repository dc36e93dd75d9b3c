package advisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// fold changes the state by an event, and re-predicts the running jobs that it touches.
// A panic is logged and counted, and the event is skipped: an event stays in the log and
// would end every advisor that reads it.
func (a *Advisor) fold(r bus.Record, live bool) {
	defer func() {
		if p := recover(); p != nil {
			a.metrics.panics.Inc()
			a.log.Error("event skipped, its handler panicked", "subject", r.Subject,
				"sequence", r.Sequence, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	for _, q := range a.apply(r, live) {
		a.advise(q, r.Sequence)
	}
}

// apply changes the state by an event of JOB and returns the questions that it raises.
func (a *Advisor) apply(r bus.Record, live bool) []*Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied, a.appliedAt = r.Sequence, r.StoredAt
	close(a.moved)
	a.moved = make(chan struct{})
	j := a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
	if _, ended := r.Event.(*schemas.Ended); ended && j != nil {
		a.score(j)
	}
	a.metrics.running.Set(float64(len(a.cluster.running)))
	a.metrics.queued.Set(float64(a.cluster.waits()))
	return a.touched(r, j, live)
}

// touched returns the questions that an event raises.
func (a *Advisor) touched(r bus.Record, j *Job, live bool) []*Question {
	if !live {
		return nil
	}
	var questions []*Question
	for _, j := range a.cluster.touched(r.Event, j, r.StoredAt) {
		questions = append(questions, a.cluster.Again(j, time.Now().UTC()))
	}
	return questions
}

// catchUp advises the running jobs, since the advice of an earlier process is not
// part of the state, and gives all of them time to be heard again. It publishes the
// advice of admitted jobs that have not started again, because the process that
// admitted them may have crashed in between; readers drop copies.
func (a *Advisor) catchUp() {
	type late struct {
		q     *Question
		cause uint64
	}
	var all []late
	var admitted []*schemas.Advice
	now := time.Now().UTC()
	a.mu.Lock()
	for _, j := range a.cluster.jobs {
		if j.admittedByPolicy() && j.Promise.EventID == schemas.AdmittedID(j.ID) {
			admitted = append(admitted, j.Promise)
		}
	}
	for _, j := range a.cluster.running {
		j.heard = now
		if j.Advice == nil || j.Advice.CauseSequence < j.last {
			all = append(all, late{a.cluster.Again(j, now), j.last})
		}
	}
	a.mu.Unlock()
	for _, advice := range admitted {
		a.outbox.addAdvice(advice)
	}
	for _, l := range all {
		a.advise(l.q, l.cause)
	}
}

// advise re-predicts a running job, and hands what is news to the outbox.
func (a *Advisor) advise(q *Question, cause uint64) {
	advice := Decide(q, *a.regressors.Load(), time.Now().UTC())
	advice.EventID, advice.CauseSequence = schemas.AdviceID(q.JobID, cause), cause
	news, risk := a.news(q, advice)
	if news {
		a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
		a.outbox.addAdvice(advice)
	}
	if risk != nil {
		a.metrics.risks.WithLabelValues(risk.Cause, strconv.FormatBool(risk.Cleared)).Inc()
		a.log.Info("promise at risk", "job_id", risk.JobID, "cleared", risk.Cleared,
			"probability", risk.Probability, "cause", risk.Cause)
		a.outbox.addRisk(risk)
	}
}

// news decides what of an advice is worth telling, and notes it at once, so that
// the next event does not tell it again before it is back from the log.
func (a *Advisor) news(q *Question, advice *schemas.Advice) (news bool, risk *schemas.Risk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.cluster.jobs[q.JobID]
	if j == nil {
		return false, nil
	}
	if risk = warn(j, q, advice); risk != nil {
		risk.EventID, risk.CauseSequence = schemas.RiskID(q.JobID, advice.CauseSequence), advice.CauseSequence
		j.Risk = risk
		a.outbox.expectRisk()
	}
	if news = a.o.isNews(j.Advice, advice); news {
		j.Advice = lastAdvice(advice)
	}
	return news, risk
}

// Defaults of what an advice must change to be news (product: an advice event). After
// each epoch the predicted end moves by about the scatter of epochs over the square root
// of those that count: with the usual 5 percent by less than 2 percent of what remains.
const (
	defaultMinChange   = 0.05             // of the remaining time
	defaultMinInterval = 30 * time.Second // after which an advice is repeated
)

// isNews reports whether an advice for a running job differs enough from the last one.
func (o *Options) isNews(last, next *schemas.Advice) bool {
	if last == nil || last.Run != next.Run || last.Decision != next.Decision ||
		last.Action != next.Action || next.At.Sub(last.At) >= o.AdviceMinInterval {
		return true
	}
	a, b := last.Chosen, next.Chosen
	if a.BatchSize != b.BatchSize || (a.PredictedSeconds == nil) != (b.PredictedSeconds == nil) {
		return true
	}
	if b.PredictedSeconds == nil {
		return false
	}
	was := last.At.Add(time.Duration(*a.PredictedSeconds * float64(time.Second)))
	is := next.At.Add(time.Duration(*b.PredictedSeconds * float64(time.Second)))
	return math.Abs(is.Sub(was).Seconds()) >= o.AdviceMinChange**b.PredictedSeconds
}

// lastAdvice returns what the state keeps of an advice for a running job: what the next
// one is compared with, job.status shows, and a replay assumes. The rest is in the stream of
// advice; for thousands of running jobs it would be most of a snapshot.
func lastAdvice(a *schemas.Advice) *schemas.Advice {
	kept := &schemas.Advice{
		JobStamp:      a.JobStamp,
		CauseSequence: a.CauseSequence,
		Decision:      a.Decision,
		Action:        a.Action,
		Load:          a.Load,
	}
	if c := a.Chosen; c != nil {
		kept.Chosen = &schemas.Alternative{BatchSize: c.BatchSize, CPUs: c.CPUs, Epochs: c.Epochs}
		if c.PredictedSeconds != nil {
			seconds := *c.PredictedSeconds
			kept.Chosen.PredictedSeconds = &seconds
		}
	}
	return kept
}

// clearRatio is how much of the room above the threshold a probability must
// have won back for an all-clear, so that it does not flap.
const clearRatio = 0.25

// warn compares a fresh advice for a running job with what was promised, and
// returns the warning or the all-clear that it calls for; nil: neither. A job is
// warned about once, if it was promised to keep its SLO, until it is cleared.
func warn(j *Job, q *Question, a *schemas.Advice) *schemas.Risk {
	if j.Promise == nil || j.Promise.Decision != schemas.MeetsSLO {
		return nil
	}
	now := a.Running(j.Setting.BatchSize, j.Setting.CPUs)
	if now == nil || now.Probability == nil || now.PredictedSeconds == nil {
		return nil
	}
	p, least := *now.Probability, q.least()
	warned := j.Risk != nil && j.Risk.Run == j.Run && !j.Risk.Cleared
	switch {
	case !warned && p < least:
	case warned && p >= least+clearRatio*(1-least):
	default:
		return nil
	}
	r := &schemas.Risk{
		Cleared:          warned,
		Probability:      p,
		Confidence:       a.Confidence,
		PredictedSeconds: *now.PredictedSeconds,
		LeftSeconds:      q.left(),
		Action:           string(schemas.ActionKeep),
	}
	r.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{At: a.At}, JobID: j.ID, Run: j.Run}
	if warned {
		r.Cause = j.Risk.Cause
		r.Message = fmt.Sprintf("all clear: %s, kept with probability %s", needed(r),
			schemas.FormatProbability(p))
		return r
	}
	r.Cause = causeOf(j, a)
	if c := a.Chosen; a.Action == schemas.ActionBatch && c.Probability != nil {
		r.Action, r.BatchSize, r.SavedProbability = string(a.Action), c.BatchSize, c.Probability
		if c.PredictedAccuracy != nil && now.PredictedAccuracy != nil {
			loss := *now.PredictedAccuracy - *c.PredictedAccuracy
			r.AccuracyLoss = &loss
		}
	}
	r.Message = warning(r)
	return r
}

// publish publishes an event that nothing waits for.
func (a *Advisor) publish(ctx context.Context, e schemas.Event) {
	if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}

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
