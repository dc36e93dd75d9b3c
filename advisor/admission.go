package advisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
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
	applyPolicy(advice, a.o.Admission, waits)
	isShared := a.sharesCPUs(&request, advice)
	isAdmitted := advice.Admission.Verdict == schemas.Admitted
	if isAdmitted && !isShared && a.o.Admission == schemas.AdmissionQueue && a.needsBusyCPUs(advice) {
		isAdmitted = false
		holdForCPUs(advice, a.o.Admission, waits)
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
		holdForCPUs(advice, a.o.Admission, waits)
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

// applyPolicy sets the verdict of a policy on a job that would start now, given the number of
// queued jobs.
func applyPolicy(advice *schemas.Advice, policy string, waits int) {
	v := &schemas.Admission{
		Policy: policy, Verdict: schemas.Admitted, Rule: schemas.AdmissionByPromises,
		Breaks: brokenJobs(advice),
	}
	advice.Admission = v
	switch {
	case policy == schemas.AdmissionProtect && len(v.Breaks) > 0:
		v.Verdict = schemas.Refused
		advice.Message = "refused, as it would break the promise to " + listJobs(v.Breaks) + ": " +
			advice.Message
	case policy == schemas.AdmissionQueue && (waits > 0 || !fitsNow(advice)):
		v.Verdict, v.Position = schemas.Queued, waits+1
		if start := startDelay(advice); waits == 0 && start > 0 {
			v.StartSeconds = &start
		}
		why := "others wait before it"
		switch {
		case len(v.Breaks) > 0:
			why = "a start now would break the promise to " + listJobs(v.Breaks)
		case waits == 0:
			why = "started later it keeps its own SLO"
		}
		advice.Message = "queued, as " + why + ": " + advice.Message
	}
}

// listJobs returns a short list of jobs for a message.
func listJobs(jobs []string) string {
	if len(jobs) > 3 {
		return strings.Join(jobs[:3], ", ") + " and others"
	}
	return strings.Join(jobs, ", ")
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
	advice := nextToStart(queue, func(i int, queued *schemas.Advice) *schemas.Advice {
		switch {
		case elastic[queued.JobID]:
			// Only the first job looks for another node: a long queue would ask for all nodes.
			return a.admitQueued(queued, i == 0)
		case fitsNow(queued) && !a.needsBusyCPUs(queued):
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
		advice.Admission = admittedByPromises(a.o.Admission)
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

// ApplyPolicy sets the verdict of a repeated advice under the policy of the recorded advice, with
// the queue of the cluster.
func ApplyPolicy(c *cluster.Cluster, again, recorded *schemas.Advice) {
	switch v := recorded.Admission; {
	case v == nil:
	case decide.IsAdmittedByCPUs(v):
		again.Admission = v
		if len(v.Loans) > 0 {
			again.Message = loanMessage(v.Loans) + ": " + again.Message
		}
	case v.Rule == schemas.AdmissionByCPUs:
		holdForCPUs(again, v.Policy, len(c.Queue()))
	case recorded.EventID == schemas.AdmittedID(recorded.JobID):
		again.Admission = admittedByPromises(v.Policy)
	default:
		applyPolicy(again, v.Policy, len(c.Queue()))
	}
}

// admittedByPromises returns the verdict on a queued job that breaks no promise.
func admittedByPromises(policy string) *schemas.Admission {
	return &schemas.Admission{
		Policy: policy, Verdict: schemas.Admitted, Rule: schemas.AdmissionByPromises,
	}
}

// brokenJobs returns the jobs whose promise the advice would break.
func brokenJobs(a *schemas.Advice) []string {
	var all []string
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			all = append(all, a.Effects[i].JobID)
		}
	}
	return all
}

// startDelay returns the seconds after which a job would keep its own SLO and break no promise. If
// it cannot keep its own SLO, it is the time after which it breaks no promise. 0 means now or
// unknown.
func startDelay(a *schemas.Advice) float64 {
	for _, kind := range [...]string{schemas.ChoiceStart, schemas.ChoiceDeadline} {
		for i := range a.Menu {
			if c := &a.Menu[i]; c.Kind == kind {
				return c.StartSeconds
			}
		}
	}
	return 0
}

// fitsNow reports whether the policy queue permits a job to start now: it breaks no promise, and
// would not gain by waiting.
func fitsNow(a *schemas.Advice) bool {
	gains := a.Decision == schemas.BestEffort &&
		slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
	return len(brokenJobs(a)) == 0 && !gains
}

// likelyMisses reports whether the job will probably miss its SLO, and a later start does not help.
func likelyMisses(a *schemas.Advice) bool {
	if a.SLOSeconds == 0 || a.Chosen.Probability == nil {
		return false
	}
	return *a.Chosen.Probability < decide.LikelyMissed &&
		!slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
}

// maxQueueLookahead bounds the queued jobs that are examined to find one that fits.
const maxQueueLookahead = 64

// nextToStart returns the advice for the queued job that may start now, or nil. It is the first in the
// queue if that fits. Otherwise it is a later one that fits and ends before the first can start (EASY
// backfilling, Lifka 1995). Jobs that will probably miss their SLO come last. admit returns the advice
// for a job that may start now, nil for any other; its first argument is the position in this order.
func nextToStart(
	queue []*schemas.Advice, admit func(i int, queued *schemas.Advice) *schemas.Advice,
) *schemas.Advice {
	ordered := slices.Clone(queue)
	slices.SortStableFunc(ordered, func(a, b *schemas.Advice) int {
		x, y := likelyMisses(a), likelyMisses(b)
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for i, queued := range ordered {
		advice := admit(i, queued)
		if advice == nil {
			continue
		}
		if i == 0 {
			return advice
		}
		room := startDelay(ordered[0])
		if end := advice.Chosen.UpperBoundSeconds; end != nil && *end <= room {
			return advice
		}
	}
	return nil
}
