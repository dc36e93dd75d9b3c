package advisor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of an advisor.
type Options struct {
	Version string        // of the program, as nats micro shows it; default "0.0.0"
	Check   time.Duration // how often silent jobs are looked for; default 1 s
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

	mu      sync.RWMutex
	cluster *Cluster
	applied uint64        // sequence up to which JOB was read
	moved   chan struct{} // closed and renewed when applied grows
}

// New returns an advisor that does not run yet.
func New(b *bus.Bus, o Options, log *slog.Logger, reg prometheus.Registerer) *Advisor {
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Check <= 0 {
		o.Check = time.Second
	}
	a := &Advisor{bus: b, log: log, metrics: newMetrics(reg), o: o, caughtUp: make(chan struct{}), answering: make(chan struct{}), cluster: NewCluster(), moved: make(chan struct{})}
	a.regressors.Store(&Regressors{})
	return a
}

// Run works until ctx ends. The parts and what they do:
//
//	JOB stream ──► fold ──► re-predict ──► job.<id>.advice
//	NODE stream ─► fold        ▲
//	job.*.alive ─► heard       │ lock
//	clock ───────► silent? ────┤──► job.<id>.lost
//	champions ───► load, check ┘
//	job.submit, … (after the fold has caught up) ──► Decide ──► reply
func (a *Advisor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func(context.Context) error{a.followJobs, a.followNodes, a.listenAlive, a.watchSilence, a.followRegressors, a.serve}
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
	o := bus.FollowOptions{Stream: schemas.StreamJob, CaughtUp: func() {
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
		questions := a.touched(r, j, live)
		a.metrics.running.Set(float64(len(a.cluster.running)))
		a.mu.Unlock()
		for _, q := range questions {
			a.advise(ctx, q, r.Sequence)
		}
		return nil
	})
}

// touched returns the questions that an event raises: of every running job on
// its nodes if a job came or went, of the job itself after an epoch.
func (a *Advisor) touched(r bus.Record, j *Job, live bool) []*Question {
	if j == nil || !live {
		return nil
	}
	jobs := []*Job{j}
	switch r.Event.(type) {
	case *schemas.Started, *schemas.Ended:
		jobs = append(a.cluster.beside(j.Setting.Nodes, j.ID), j)
	case *schemas.Submitted:
		return nil
	}
	var questions []*Question
	for _, j := range jobs {
		if j.State == schemas.StateRunning {
			questions = append(questions, a.cluster.again(j, time.Now().UTC()))
		}
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
			all = append(all, late{a.cluster.again(j, now), j.last})
		}
	}
	a.mu.Unlock()
	for _, l := range all {
		a.advise(ctx, l.q, l.cause)
	}
}

// advise publishes the advice for a running job.
func (a *Advisor) advise(ctx context.Context, q *Question, cause uint64) {
	advice := Decide(q, *a.regressors.Load(), time.Now().UTC())
	advice.EventID, advice.CauseSequence = schemas.AdviceID(q.JobID, cause), cause
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	if _, err := a.bus.Publish(ctx, advice); err != nil && ctx.Err() == nil {
		a.log.Warn("advice not published", "job_id", q.JobID, "error", err)
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
	return a.bus.Listen(ctx, schemas.JobSubject("*", schemas.EventAlive), func(e schemas.Event) {
		alive := e.(*schemas.Alive)
		a.mu.Lock()
		if j := a.cluster.jobs[alive.JobID]; j != nil && alive.Run == j.Run {
			j.heard = time.Now()
		}
		a.mu.Unlock()
	})
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

// followRegressors takes every champion into use that passes all checks.
func (a *Advisor) followRegressors(ctx context.Context) error {
	return a.bus.WatchChampions(ctx, func(c schemas.Champion, revision uint64) {
		r, err := a.load(ctx, c)
		if err != nil {
			a.metrics.regressors.WithLabelValues(c.Target, "refused").Inc()
			a.log.Error("regressor refused, the one before stays", "target", c.Target, "digest", c.ModelDigest, "error", err)
			e := &schemas.Rejected{Target: c.Target, ModelDigest: c.ModelDigest, Reason: err.Error()}
			e.EventID, e.At = schemas.RejectedID(c.Target, c.ModelDigest), time.Now().UTC()
			if _, err := a.bus.Publish(ctx, e); err != nil && ctx.Err() == nil {
				a.log.Warn("event not published", "subject", e.Subject(), "error", err)
			}
			return
		}
		next, known := a.regressors.Load().with(c.Target, r)
		if !known {
			return
		}
		a.regressors.Store(&next)
		a.metrics.regressors.WithLabelValues(c.Target, "loaded").Inc()
		a.metrics.loaded.WithLabelValues(c.Target).Set(float64(r.predictor.Manifest().Examples.Count))
		a.log.Info("regressor in use", "target", c.Target, "revision", revision, "digest", c.ModelDigest, "examples", r.predictor.Manifest().Examples.Count)
	})
}

// load fetches a champion's files and checks all that can be checked. Bytes that
// cannot be fetched because NATS is away are tried again until ctx ends.
func (a *Advisor) load(ctx context.Context, c schemas.Champion) (*Regressor, error) {
	manifest, err := a.bus.Artifact(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := a.bus.Artifact(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	if got := p.Manifest().Target; got != c.Target {
		return nil, fmt.Errorf("it predicts %q, not %q", got, c.Target)
	}
	return NewRegressor(p, c.ModelDigest)
}

// serve answers requests once the log was read to its end.
func (a *Advisor) serve(ctx context.Context) error {
	select {
	case <-a.caughtUp:
	case <-ctx.Done():
		return nil
	}
	return a.bus.Serve(ctx, bus.Service{Name: "courier-advisor", Version: a.o.Version, Description: "answers job requests and watches running jobs",
		Ready: func() { close(a.answering) }, Endpoints: []bus.Endpoint{
			bus.Handle(schemas.SubjectJobSubmit, a.submit),
			bus.Handle(schemas.SubjectJobPredict, a.predict),
			bus.Handle(schemas.SubjectJobStatus, a.status),
			bus.Handle(schemas.SubjectJobList, a.list),
			bus.Handle(schemas.SubjectJobCancel, a.cancel),
		}})
}

// predict answers a request without recording it.
func (a *Advisor) predict(_ context.Context, q *schemas.JobRequest) (any, error) {
	return a.answer(q.WithDefaults()), nil
}

func (a *Advisor) answer(q schemas.JobRequest) *schemas.Advice {
	now := time.Now().UTC()
	a.mu.RLock()
	question := a.cluster.ask(q, now)
	a.mu.RUnlock()
	advice := Decide(question, *a.regressors.Load(), now)
	a.metrics.advice.WithLabelValues(string(advice.Decision)).Inc()
	return advice
}

// submit records the request with its advice, then answers with the advice. The
// same request again gets the first advice; another with the same id, conflict.
func (a *Advisor) submit(ctx context.Context, q *schemas.JobRequest) (any, error) {
	request := q.WithDefaults()
	if request.JobID == "" {
		request.JobID = "job-" + strings.ToLower(rand.Text()[:12])
	} else if first, err := a.submittedBefore(&request); first != nil || err != nil {
		return first, err
	}
	advice := a.answer(request)
	e := &schemas.Submitted{Request: request, Advice: *advice}
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: request.JobID + "/submitted", At: advice.At}, JobID: request.JobID}
	e.Advice.EventID = e.EventID
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	written, err := schemas.Marshal(&e.Advice)
	if err != nil {
		return nil, err
	}
	e.Written = written
	sequence, fresh, err := a.bus.PublishOnce(ctx, e)
	if err != nil {
		return nil, err
	}
	if !fresh { // another advisor recorded the same id first
		a.waitFor(ctx, sequence)
		return a.submittedBefore(&request)
	}
	a.mu.Lock()
	a.cluster.Apply(e, sequence, e.At)
	a.mu.Unlock()
	return e.Written, nil
}

// submittedBefore returns the advice that the same request got, nil if its id is
// new, or a conflict if that id stands for something else.
func (a *Advisor) submittedBefore(q *schemas.JobRequest) (*schemas.Advice, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.jobs[q.JobID]
	switch {
	case j == nil:
		return nil, nil
	case j.Submitted == nil:
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: "job " + q.JobID + " was started without a request; take another id"}
	case !sameBody(&j.Submitted.Request, q):
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: "job " + q.JobID + " was submitted with another body; take another id"}
	}
	return &j.Submitted.Advice, nil
}

// sameBody compares requests as they are written, so that one that was read back
// from the log equals itself.
func sameBody(a, b *schemas.JobRequest) bool {
	x, errX := schemas.Marshal(a)
	y, errY := schemas.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (a *Advisor) status(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.jobs[q.JobID]
	if j == nil {
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Field: "id", Message: "no job " + q.JobID}
	}
	return j.status(), nil
}

func (a *Advisor) list(_ context.Context, q *schemas.JobListRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.list(q)
}

// cancel records that a job is to end; its runner listens for the event.
func (a *Advisor) cancel(ctx context.Context, q *schemas.JobCancelRequest) (any, error) {
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: q.Reason}
	a.mu.RLock()
	j := a.cluster.jobs[q.JobID]
	var over bool
	var state schemas.State
	if j != nil {
		over, state = j.over(), j.State
		e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.EndedID(j.ID, j.Run, schemas.EventCancelled), At: time.Now().UTC()}, JobID: j.ID, Run: j.Run}
		e.Setting, e.EpochsDone = j.Setting, j.EpochsDone
	}
	a.mu.RUnlock()
	if over && state != schemas.StateCancelled {
		return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: fmt.Sprintf("job %s has ended already: %s", q.JobID, state)}
	}
	if j != nil && !over {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		sequence, err := a.bus.Publish(ctx, e)
		if err != nil {
			return nil, err
		}
		a.waitFor(ctx, sequence)
	}
	return a.status(ctx, &schemas.JobStatusRequest{JobID: q.JobID})
}
