package advisor

import (
	"context"
	"runtime/debug"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/bus"
	"courier/schemas"
)

func (a *Advisor) followJobs(ctx context.Context) error {
	live := false
	a.mu.RLock()
	from := a.applied + 1
	a.mu.RUnlock()
	o := bus.FollowOptions{
		Stream: schemas.StreamJob,
		From:   from,
		CaughtUp: func() {
			live = true
			a.catchUp()
			close(a.caughtUp)
		},
	}
	return a.bus.Follow(ctx, o, func(r bus.Record) error {
		a.handleJobEvent(r, live)
		return nil
	})
}

func (a *Advisor) followNodes(ctx context.Context) error {
	return a.bus.Follow(ctx, bus.FollowOptions{
		Stream:         schemas.StreamNode,
		LastPerSubject: true,
	}, func(r bus.Record) error {
		a.mu.Lock()
		a.cluster.Apply(r.Event, r.Sequence, r.StoredAt)
		a.mu.Unlock()
		return nil
	})
}

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
	a.advising.Lock()
	defer a.advising.Unlock()
	questions, pools := a.apply(r, live)
	moved := a.moveCPUs(pools, r.Sequence, "")
	for _, q := range questions {
		if !moved[q.JobID] {
			a.advise(q, r.Sequence)
		}
	}
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
		a.metrics.countOutcome(j)
	}
	a.metrics.running.Set(float64(a.cluster.RunningJobs()))
	a.metrics.queued.Set(float64(len(a.cluster.Queue())))
	questions := a.affected(r, j, live)
	if s, ok := r.Event.(*schemas.Submitted); ok && j == nil {
		// Submit has applied it already, but the jobs that lend CPUs are advised here.
		j = a.cluster.Job(s.JobID)
	}
	if live && j != nil && !j.IsSettled() {
		j.LastSeen = a.now() // an event that is read late says nothing about the heartbeats since
	}
	return questions, a.affectedPools(j, live)
}

// affected returns the questions that re-predict the jobs affected by an event; none during the
// replay.
func (a *Advisor) affected(r bus.Record, j *cluster.Job, live bool) []*decide.Question {
	if !live {
		return nil
	}
	var questions []*decide.Question
	for _, j := range a.cluster.Affected(r.Event, j, r.StoredAt) {
		questions = append(questions, decide.AskRunning(a.cluster, j, a.now()))
	}
	return questions
}

// affectedPools returns the nodes of a job whose CPUs to plan; none during the replay.
func (a *Advisor) affectedPools(j *cluster.Job, live bool) []*shares.Pool {
	switch {
	case !live || j == nil:
		return nil
	case j.IsAdmitted():
		return a.poolsOf(j.Promise.Nodes)
	}
	return a.poolsOf(j.Setting.Nodes)
}

// poolsOf returns the nodes, of those given, whose CPUs to plan. The caller holds the lock.
func (a *Advisor) poolsOf(nodes []string) (pools []*shares.Pool) {
	if a.o.MoveCPUs == MovesOff {
		return nil
	}
	for _, node := range nodes {
		if p := shares.PoolOf(a.cluster, node, a.now()); p != nil && len(p.Jobs) > 0 {
			pools = append(pools, p)
		}
	}
	return pools
}

// moveCPUs plans the CPUs of nodes, and adds advice to the outbox for each job whose CPUs should
// change. It returns these jobs. The suffix is that of publishAdvice.
func (a *Advisor) moveCPUs(pools []*shares.Pool, cause uint64, suffix string) map[string]bool {
	moved := map[string]bool{}
	for _, pool := range pools {
		now := a.now()
		pool.Objective = a.o.Objective
		for _, p := range pool.Plan(*a.regressors.Load(), now) {
			p.Move.DryRun = a.o.MoveCPUs != MovesOn
			advice := shares.DecideMove(p.Question, p.Move, *a.regressors.Load(), now)
			a.publishAdvice(p.Question, advice, cause, suffix)
			moved[p.Question.JobID] = true
		}
	}
	return moved
}

// catchUp runs once at the end of the replay. It re-predicts the running jobs, because the state
// has no advice of an earlier process, and resets their silence timers. It publishes once more the
// advice of admitted jobs that have not started, because the process that admitted them may have
// crashed before publishing it. Readers drop duplicates.
func (a *Advisor) catchUp() {
	var all []causedQuestion
	now := a.now()
	a.mu.Lock()
	admitted := a.cluster.Admissions()
	a.resetSilence(now)
	for j := range a.cluster.Running() {
		if j.Advice == nil || j.Advice.CauseSequence < j.Last {
			all = append(all, causedQuestion{decide.AskRunning(a.cluster, j, now), j.Last})
		}
	}
	a.mu.Unlock()
	for _, advice := range admitted {
		a.outbox.addAdvice(advice)
	}
	for _, q := range all {
		a.advise(q.Question, q.cause)
	}
}
