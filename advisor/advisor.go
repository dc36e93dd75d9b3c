package advisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of an advisor.
type Options struct {
	Version string        // of the program, as nats micro shows it; default "0.0.0"
	Check   time.Duration // how often silent jobs are looked for; default 1 s

	// Admission is the policy of the cluster, the same for all its advisors: one
	// of schemas.AdmissionAdvise (the default), AdmissionProtect, AdmissionQueue.
	Admission string

	// Promise is what the confidence of a request that does not say is of, the same
	// for all advisors of the cluster; default schemas.PromiseEach.
	Promise schemas.Promise
}

// Advisor answers job requests and watches running jobs.
type Advisor struct {
	bus        *bus.Bus
	log        *slog.Logger
	metrics    *metrics
	o          Options
	regressors atomic.Pointer[Regressors]
	caughtUp   chan struct{} // closed when the JOB stream was read to its end
	answering  chan struct{} // closed when requests are answered
	admitting  sync.Mutex    // one admission at a time
	ballast    []byte        // never touched, see ballastBytes

	mu      sync.RWMutex
	cluster *Cluster
	applied uint64        // sequence up to which JOB was read
	moved   chan struct{} // closed and renewed when applied grows
}

// ballastBytes make the heap look larger than it is, so that the garbage of answers is
// collected every 30 MB and not every 4: for an advisor of few jobs that was a quarter
// of its work. It takes addresses and no memory.
const ballastBytes = 16 << 20

// New returns an advisor that does not run yet.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) *Advisor {
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Admission == "" {
		o.Admission = schemas.AdmissionAdvise
	}
	if o.Check <= 0 {
		o.Check = time.Second
	}
	a := &Advisor{bus: b, log: log, metrics: newMetrics(reg), o: o, caughtUp: make(chan struct{}), answering: make(chan struct{}), cluster: NewCluster(), moved: make(chan struct{}), ballast: make([]byte, ballastBytes)}
	a.regressors.Store(&Regressors{})
	return a
}

// Run works until ctx ends. The parts and what they do:
//
//	JOB stream ──► fold ──► re-predict ──► job.<id>.advice, job.<id>.risk
//	NODE stream ─► fold        ▲
//	job.*.alive ─► heard       │ lock
//	clock ───────► silent? ────┤──► job.<id>.lost
//	champions ───► load, check ┘
//	job.submit, … (after the fold has caught up) ──► Decide ──► reply
//	queue ──► next (after every event) ──► job.<id>.advice: start
func (a *Advisor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func(context.Context) error{a.followJobs, a.followNodes, a.listenAlive, a.watchSilence, a.followRegressors, a.serve, a.keepQueue}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
}

// Ready returns nil when requests are answered.
func (a *Advisor) Ready() error {
	select {
	case <-a.answering:
		return nil
	default:
		return errors.New("advisor: the log is not read to its end yet")
	}
}

// Answering returns a channel that is closed when requests are answered.
func (a *Advisor) Answering() <-chan struct{} { return a.answering }

func (a *Advisor) followJobs(ctx context.Context) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamJob, Share: true, CaughtUp: func() {
		live = true
		a.catchUp(ctx)
		close(a.caughtUp)
	}}
	return a.bus.Follow(ctx, o, func(r bus.Record) error {
		a.mu.Lock()
		j := a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
		a.applied = r.Sequence
		close(a.moved)
		a.moved = make(chan struct{})
		if _, ended := r.Event.(*schemas.Ended); ended && j != nil {
			a.score(j)
		}
		questions := a.touched(r, j, live)
		a.metrics.running.Set(float64(len(a.cluster.running)))
		a.metrics.queued.Set(float64(a.cluster.waits()))
		a.mu.Unlock()
		for _, q := range questions {
			a.advise(ctx, q, r.Sequence)
		}
		return nil
	})
}

// score counts what became of a submission: the public score as metrics.
func (a *Advisor) score(j *Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	kept := strconv.FormatBool(o.Kept)
	if p := o.Promise.Chosen.Probability; p != nil {
		a.metrics.calibration.WithLabelValues(strconv.FormatFloat(schemas.CalibrationFrom(*p), 'f', 2, 64), kept).Inc()
	}
	if o.Promise.Decision == schemas.MeetsSLO {
		a.metrics.promises.WithLabelValues(strconv.FormatFloat(o.Submitted.Request.Confidence, 'f', 2, 64), kept).Inc()
	}
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

// catchUp advises the running jobs whose last event came while nobody listened,
// and gives all of them time to be heard again.
func (a *Advisor) catchUp(ctx context.Context) {
	type late struct {
		q     *Question
		cause uint64
	}
	var all []late
	now := time.Now().UTC()
	a.mu.Lock()
	for _, j := range a.cluster.running {
		j.heard = now
		if j.Advice == nil || j.Advice.CauseSequence < j.last {
			all = append(all, late{a.cluster.Again(j, now), j.last})
		}
	}
	a.mu.Unlock()
	for _, l := range all {
		a.advise(ctx, l.q, l.cause)
	}
}

// advise predicts a running job again, and says so where that is news.
func (a *Advisor) advise(ctx context.Context, q *Question, cause uint64) {
	advice := Decide(q, *a.regressors.Load(), time.Now().UTC())
	advice.EventID, advice.CauseSequence = schemas.AdviceID(q.JobID, cause), cause
	news, risk := a.news(q, advice)
	if news {
		a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
		a.tell(ctx, advice)
	}
	if risk != nil {
		a.metrics.risks.WithLabelValues(risk.Cause, strconv.FormatBool(risk.Cleared)).Inc()
		a.log.Info("promise at risk", "job_id", risk.JobID, "cleared", risk.Cleared, "probability", risk.Probability, "cause", risk.Cause)
		a.tell(ctx, risk)
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
	}
	if news = worthTelling(j.Advice, advice); news {
		j.Advice = advice
	}
	return news, risk
}

func (a *Advisor) tell(ctx context.Context, e schemas.Event) {
	if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
	}
}

func (a *Advisor) followNodes(ctx context.Context) error {
	return a.bus.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true}, func(r bus.Record) error {
		a.mu.Lock()
		a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
		a.mu.Unlock()
		return nil
	})
}

func (a *Advisor) listenAlive(ctx context.Context) error {
	alive := schemas.JobSubject("*", schemas.EventAlive)
	return a.bus.ListenPersons(ctx, []string{alive, schemas.PersonSubject("*", alive)}, a.hear)
}

// watchSilence records jobs as lost that have been silent for too long. While
// NATS is away nobody can be heard, so nobody is lost.
func (a *Advisor) watchSilence(ctx context.Context) error {
	tick := time.NewTicker(a.o.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if a.Ready() != nil {
			continue
		}
		now := time.Now().UTC()
		a.mu.Lock()
		if !a.bus.Connected() {
			for _, j := range a.cluster.running {
				j.heard = now
			}
		}
		var lost []*schemas.Ended
		for _, j := range a.cluster.Silent(now) {
			e := &schemas.Ended{Outcome: schemas.EventLost, Setting: j.Setting, EpochsDone: j.EpochsDone, Reason: fmt.Sprintf("silent since %s", j.heard.UTC().Format(time.RFC3339))}
			e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.LostID(j.ID, j.last), At: now}, JobID: j.ID, Run: j.Run}
			lost = append(lost, e)
		}
		a.mu.Unlock()
		for _, e := range lost {
			a.metrics.lost.Inc()
			a.log.Warn("job is lost", "job_id", e.JobID, "reason", e.Reason)
			a.record(ctx, e)
		}
	}
}

// record publishes an event of the advisor's own and applies it at once, so that
// the next request sees it.
func (a *Advisor) record(ctx context.Context, e schemas.Event) {
	sequence, err := a.bus.Publish(ctx, e)
	if err != nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
		return
	}
	a.waitFor(ctx, sequence)
}

// waitFor returns when the fold has read JOB up to sequence, or ctx ends.
func (a *Advisor) waitFor(ctx context.Context, sequence uint64) {
	for {
		a.mu.RLock()
		applied, moved := a.applied, a.moved
		a.mu.RUnlock()
		if applied >= sequence {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}
