package advisor

import (
	"context"
	"errors"
	"time"

	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// readTimeout bounds how long a request waits until this advisor has applied recent events, or
// until the event log answers.
const readTimeout = 2 * time.Second

// hasAdmissionPolicy reports whether the policy may refuse or queue a job.
func (a *Advisor) hasAdmissionPolicy() bool {
	return a.o.Admission == schemas.AdmissionProtect || a.o.Admission == schemas.AdmissionQueue
}

// admit answers a request under a policy that may refuse or queue it. Admissions are serialized in
// the whole cluster: each takes all previous ones into account.
func (a *Advisor) admit(ctx context.Context, request schemas.JobRequest) (*schemas.Advice, error) {
	a.admitting.Lock()
	defer a.admitting.Unlock()
	for {
		revision, err := a.lastAdmission(ctx)
		if err != nil {
			return nil, err
		}
		advice := a.answerUnderPolicy(request)
		if v := advice.Admission.Verdict; v != schemas.Refused { // a refusal needs no ticket
			err = a.bus.TakeTicket(ctx, schemas.Ticket{
				JobID:   request.JobID,
				Verdict: v,
				At:      time.Now().UTC(),
			}, revision)
			if errors.Is(err, schemas.ErrConflict) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		a.metrics.admissions.WithLabelValues(a.o.Admission, string(advice.Admission.Verdict)).Inc()
		return advice, nil
	}
}

// answerUnderPolicy answers a request with the verdict of the policy. If the job would be refused or
// queued, elastic jobs may lend it CPUs.
func (a *Advisor) answerUnderPolicy(request schemas.JobRequest) *schemas.Advice {
	advice, waits := a.answer(request), a.queueLength()
	shares.SetVerdict(advice, a.o.Admission, waits)
	isShared := a.sharesCPUs(&request, advice)
	isAdmitted := advice.Admission.Verdict == schemas.Admitted
	if isAdmitted && !isShared && a.o.Admission == schemas.AdmissionQueue && a.needsBusyCPUs(advice) {
		isAdmitted = false
		shares.HoldForCPUs(advice, a.o.Admission, waits)
	}
	mustWait := waits > 0 && a.o.Admission == schemas.AdmissionQueue
	if mustWait || isAdmitted && !isShared {
		return advice
	}
	admitted := a.admitByShares(advice, true, func(nodes []string, now time.Time) *decide.Question {
		return decide.AskOn(a.cluster, nodes, request, now)
	})
	switch {
	case admitted != nil:
		return admitted
	case isAdmitted:
		shares.HoldForCPUs(advice, a.o.Admission, waits)
	}
	return advice
}

// lastAdmission waits until the last admission has been applied here. It returns the revision of
// its ticket, which the next ticket must follow. If an admission is not recorded within
// schemas.SubmitTimeout of its ticket, its advisor has given up or crashed.
func (a *Advisor) lastAdmission(ctx context.Context) (uint64, error) {
	t, revision, err := a.bus.Ticket(ctx)
	if err != nil || t.JobID == "" {
		return revision, err
	}
	patience, cancel := context.WithDeadline(ctx, t.At.Add(schemas.SubmitTimeout))
	defer cancel()
	for {
		a.mu.RLock()
		j, moved := a.cluster.Live(t.JobID), a.advanced
		known := j != nil && (t.Verdict == schemas.Queued || j.State != schemas.StateQueued)
		a.mu.RUnlock()
		if known {
			return revision, nil
		}
		select {
		case <-moved:
		case <-patience.Done():
			return revision, a.readToTheEnd(ctx)
		}
	}
}

// readToTheEnd waits until this advisor has applied the current last event of JOB.
func (a *Advisor) readToTheEnd(ctx context.Context) error {
	last, err := a.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return err
	}
	a.waitFor(ctx, last)
	if ctx.Err() != nil {
		return &schemas.Error{
			Code:    schemas.CodeUnavailable,
			Message: "another advisor is admitting a job; retry in a moment",
		}
	}
	return nil
}

// keepQueue starts queued jobs when the policy permits, until ctx ends.
func (a *Advisor) keepQueue(ctx context.Context) error {
	tick := time.NewTicker(a.o.Check)
	defer tick.Stop()
	for {
		a.mu.RLock()
		moved := a.advanced
		a.mu.RUnlock()
		if a.Ready() == nil && a.o.Admission == schemas.AdmissionQueue {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = a.startNext(ctx); err != nil && ctx.Err() == nil {
					a.log.Warn("queued job not admitted", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-moved:
		case <-tick.C:
		}
	}
}

// startNext admits the queued job that may start now, if there is one. more reports whether another
// may follow. Several advisors may try at once; the ticket lets one of them succeed.
func (a *Advisor) startNext(ctx context.Context) (more bool, err error) {
	if len(a.queueQuestions(time.Now().UTC())) == 0 {
		return false, nil
	}
	a.admitting.Lock()
	defer a.admitting.Unlock()
	revision, err := a.lastAdmission(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now().UTC()
	var queue []*schemas.Advice
	elastic := map[string]bool{}
	for _, q := range a.queueQuestions(now) {
		queued := decide.Decide(q, *a.regressors.Load(), now)
		queue = append(queue, queued)
		elastic[q.JobID] = a.sharesCPUs(&q.Request, queued)
	}
	advice := shares.NextToStart(queue, func(i int, queued *schemas.Advice) *schemas.Advice {
		switch {
		case elastic[queued.JobID]:
			// Only the first job looks for another node: a long queue would ask for all nodes.
			return a.admitQueued(queued, i == 0)
		case shares.FitsNow(queued) && !a.needsBusyCPUs(queued):
			return queued
		case i == 0 && a.o.MoveCPUs == MovesOn:
			return a.admitQueued(queued, true)
		}
		return nil
	})
	if advice == nil {
		return false, nil
	}
	if advice.Admission == nil {
		advice.Admission = shares.AdmittedByPromises(a.o.Admission)
	}
	advice.EventID = schemas.AdmittedID(advice.JobID)
	// lastAdmission relies on this timeout.
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	err = a.bus.TakeTicket(ctx, schemas.Ticket{
		JobID:   advice.JobID,
		Verdict: schemas.Admitted,
		At:      now,
	}, revision)
	if errors.Is(err, schemas.ErrConflict) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	sequence, first, err := a.bus.PublishOnce(ctx, schemas.NewJobAdmitted(advice))
	if err != nil {
		return false, err
	}
	if first {
		a.publish(ctx, advice)
	}
	a.metrics.admissions.WithLabelValues(a.o.Admission, string(schemas.Admitted)).Inc()
	a.waitFor(ctx, sequence)
	return true, nil
}

// admitQueued returns advice for a queued job that may start under the plan for the CPUs of its nodes,
// or nil.
func (a *Advisor) admitQueued(queued *schemas.Advice, everywhere bool) *schemas.Advice {
	return a.admitByShares(queued, everywhere, func(nodes []string, now time.Time) *decide.Question {
		j := a.cluster.Live(queued.JobID)
		if j == nil || j.State != schemas.StateQueued {
			return nil
		}
		return decide.AskQueuedOn(a.cluster, nodes, j, now)
	})
}

// queueQuestions returns the questions of the first queued jobs.
func (a *Advisor) queueQuestions(now time.Time) []*decide.Question {
	a.mu.RLock()
	defer a.mu.RUnlock()
	queue := a.cluster.Queue()
	questions := make([]*decide.Question, 0, min(len(queue), maxQueueLookahead))
	for _, j := range queue[:min(len(queue), maxQueueLookahead)] {
		questions = append(questions, decide.AskQueued(a.cluster, j, now))
	}
	return questions
}

// maxQueueLookahead bounds the queued jobs that are examined to find one that fits.
const maxQueueLookahead = 64
