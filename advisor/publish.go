package advisor

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/bus"
	"courier/schemas"
)

// handleJobEvent applies an event and re-predicts the running jobs that it affects. If that panics,
// the panic is logged and counted, and the event is skipped. Otherwise one event in the log would
// crash every advisor.
func (a *Advisor) handleJobEvent(r bus.Record, live bool) {
	defer func() {
		if p := recover(); p != nil {
			a.metrics.panics.Inc()
			a.log.Error("event skipped, its handler panicked", "subject", r.Subject,
				"sequence", r.Sequence, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	questions, pools := a.apply(r, live)
	moved := a.moveCPUs(pools, r.Sequence)
	for _, q := range questions {
		if !moved[q.JobID] {
			a.advise(q, r.Sequence)
		}
	}
}

// moveCPUs plans the CPUs of nodes, and adds advice to the outbox for each job whose CPUs should
// change. It returns these jobs.
func (a *Advisor) moveCPUs(pools []*shares.Pool, cause uint64) map[string]bool {
	moved := map[string]bool{}
	for _, pool := range pools {
		now := time.Now().UTC()
		pool.Objective = a.o.Objective
		for _, p := range pool.Plan(*a.regressors.Load(), now) {
			p.Move.DryRun = a.o.MoveCPUs != MovesOn
			advice := shares.DecideMove(p.Question, p.Move, *a.regressors.Load(), now)
			a.publishAdvice(p.Question, advice, cause)
			moved[p.Question.JobID] = true
		}
	}
	return moved
}

// apply applies an event of JOB. It returns the questions to answer because of it, and the nodes
// whose CPUs to plan.
func (a *Advisor) apply(r bus.Record, live bool) ([]*decide.Question, []*shares.Pool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied, a.appliedAt = r.Sequence, r.StoredAt
	close(a.advanced)
	a.advanced = make(chan struct{})
	j := a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
	if _, ended := r.Event.(*schemas.Ended); ended && j != nil {
		a.score(j)
	}
	a.metrics.running.Set(float64(a.cluster.RunningJobs()))
	a.metrics.queued.Set(float64(len(a.cluster.Queue())))
	questions := a.affected(r, j, live)
	if s, ok := r.Event.(*schemas.Submitted); ok && j == nil {
		// Submit has applied it already, but the jobs that lend CPUs are advised here.
		j = a.cluster.Live(s.JobID)
	}
	return questions, a.affectedPools(j, live)
}

// affectedPools returns the nodes of a job whose CPUs to plan; none during the replay.
func (a *Advisor) affectedPools(j *cluster.Job, live bool) (pools []*shares.Pool) {
	if !live || j == nil || a.o.MoveCPUs == MovesOff {
		return nil
	}
	nodes := j.Setting.Nodes
	if j.IsAdmitted() {
		nodes = j.Promise.Nodes
	}
	for _, node := range nodes {
		if p := shares.PoolOf(a.cluster, node, time.Now().UTC()); p != nil && len(p.Jobs) > 0 {
			pools = append(pools, p)
		}
	}
	return pools
}

// affected returns the questions that re-predict the jobs affected by an event; none during the
// replay.
func (a *Advisor) affected(r bus.Record, j *cluster.Job, live bool) []*decide.Question {
	if !live {
		return nil
	}
	var questions []*decide.Question
	for _, j := range a.cluster.Affected(r.Event, j, r.StoredAt) {
		questions = append(questions, decide.AskRunning(a.cluster, j, time.Now().UTC()))
	}
	return questions
}

// catchUp runs once at the end of the replay. It re-predicts the running jobs, because the state
// has no advice of an earlier process, and resets their silence timers. It publishes once more the
// advice of admitted jobs that have not started, because the process that admitted them may have
// crashed before publishing it. Readers drop duplicates.
func (a *Advisor) catchUp() {
	type late struct {
		q     *decide.Question
		cause uint64
	}
	var all []late
	now := time.Now().UTC()
	a.mu.Lock()
	admitted := a.cluster.Admissions()
	for j := range a.cluster.Running() {
		j.LastSeen = now
		if j.Advice == nil || j.Advice.CauseSequence < j.Last {
			all = append(all, late{decide.AskRunning(a.cluster, j, now), j.Last})
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

// advise re-predicts a running job.
func (a *Advisor) advise(q *decide.Question, cause uint64) {
	a.publishAdvice(q, decide.Decide(q, *a.regressors.Load(), time.Now().UTC()), cause)
}

// publishAdvice adds an advice for a running job to the outbox if it differs enough from the last
// one, and the warning if there is one.
func (a *Advisor) publishAdvice(q *decide.Question, advice *schemas.Advice, cause uint64) {
	advice.EventID, advice.CauseSequence = schemas.AdviceID(q.JobID, cause), cause
	news, risks := a.newsAndRisks(q, advice)
	if news {
		a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
		a.outbox.addAdvice(advice)
	}
	for _, risk := range risks {
		a.metrics.risks.WithLabelValues(risk.Cause, strconv.FormatBool(risk.Cleared)).Inc()
		a.log.Info("promise at risk", "job_id", risk.JobID, "cleared", risk.Cleared,
			"probability", risk.Probability, "cause", risk.Cause)
		a.outbox.addRisk(risk)
	}
}

// newsAndRisks decides whether an advice is published, and returns the warnings that it causes. All
// are recorded in the state immediately, so that the next event does not repeat them before they
// arrive from the log.
func (a *Advisor) newsAndRisks(
	q *decide.Question, advice *schemas.Advice,
) (news bool, risks []*schemas.Risk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.cluster.Live(q.JobID)
	if j == nil {
		return false, nil
	}
	if risk := decide.Warn(j, q, advice); risk != nil {
		risk.EventID = schemas.RiskID(q.JobID, advice.CauseSequence)
		j.Risk, risks = risk, append(risks, risk)
	}
	if risk := decide.WarnDivergence(j, q, advice); risk != nil {
		risk.EventID = schemas.DivergenceID(q.JobID, advice.CauseSequence)
		j.Divergence, risks = risk, append(risks, risk)
	}
	for _, risk := range risks {
		risk.CauseSequence = advice.CauseSequence
		a.outbox.expectRisk()
	}
	next := cluster.Summarize(advice)
	if news = a.o.worthPublishing(j.Advice, next); news {
		j.Advice = next
	}
	return news, risks
}

// Defaults for publishing changed advice. After each epoch the predicted end moves by about the
// scatter of epochs divided by the square root of the number of observed epochs. With the usual
// scatter of 5 percent this is less than 2 percent of the remaining time.
const (
	defaultMinChange   = 0.05             // of the remaining time
	defaultMinInterval = 30 * time.Second // until an unchanged advice is repeated
)

// worthPublishing reports whether an advice for a running job differs enough from the last one.
func (o *Options) worthPublishing(last, next *cluster.AdviceSummary) bool {
	if last == nil || last.Run != next.Run || last.Decision != next.Decision ||
		last.Action != next.Action || next.At.Sub(last.At) >= o.AdviceMinInterval {
		return true
	}
	if last.BatchSize != next.BatchSize || last.CPUs != next.CPUs ||
		(last.PredictedSeconds == nil) != (next.PredictedSeconds == nil) {
		return true
	}
	if next.PredictedSeconds == nil {
		return false
	}
	change := predictedEnd(next).Sub(predictedEnd(last)).Seconds()
	return math.Abs(change) >= o.AdviceMinChange**next.PredictedSeconds
}

// predictedEnd returns when the job is predicted to end.
func predictedEnd(s *cluster.AdviceSummary) time.Time {
	return s.At.Add(time.Duration(*s.PredictedSeconds * float64(time.Second)))
}

// publish publishes an event without retrying, and logs an error.
func (a *Advisor) publish(ctx context.Context, e schemas.Event) {
	if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}

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
