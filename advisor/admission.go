package advisor

import (
	"context"
	"errors"
	"time"

	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// hasAdmissionPolicy reports whether the policy may refuse or queue a job.
func (a *Advisor) hasAdmissionPolicy() bool {
	return a.o.Admission == schemas.AdmissionProtect || a.o.Admission == schemas.AdmissionQueue
}

// admit answers a request under a policy that may refuse or queue it. Admissions are serialized in
// the whole cluster: each takes all previous ones into account.
func (a *Advisor) admit(ctx context.Context, request schemas.JobRequest) (*schemas.Advice, error) {
	if err := a.lockAdmission(ctx); err != nil {
		return nil, err
	}
	defer a.unlockAdmission()
	for {
		revision, err := a.lastAdmission(ctx)
		if err != nil {
			return nil, err
		}
		advice := a.answerUnderPolicy(request)
		if v := advice.Admission.Verdict; v != schemas.Refused { // a refusal needs no ticket
			err = a.bus.TakeTicket(ctx, schemas.Ticket{JobID: request.JobID, Verdict: v}, revision)
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
	isQueue := a.o.Admission == schemas.AdmissionQueue
	advice := a.answer(request)
	waits := a.queuedFor(advice.Nodes)
	shares.SetVerdict(advice, a.o.Admission, waits)
	isShared := a.sharesCPUs(&request, advice)
	isAdmitted := advice.Admission.Verdict == schemas.Admitted
	if isAdmitted && !isShared && isQueue && a.needsBusyCPUs(advice) {
		isAdmitted = false
		shares.HoldForCPUs(advice, a.o.Admission, waits)
	}
	if isQueue && waits > 0 || isAdmitted && !isShared {
		return advice
	}
	admitted := a.admitByShares(advice, true, func(nodes []string, now time.Time) *decide.Question {
		return decide.AskOn(a.cluster, nodes, request, now)
	})
	switch {
	case admitted != nil && !(isQueue && a.queuedFor(admitted.Nodes) > 0):
		return admitted
	case isAdmitted:
		shares.HoldForCPUs(advice, a.o.Admission, waits)
	}
	return advice
}

// queuedFor returns the number of queued jobs that may run on one of some nodes.
func (a *Advisor) queuedFor(nodes []string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.QueuedFor(nodes, a.now())
}

// lockAdmission waits until no other admission of this advisor is in progress.
func (a *Advisor) lockAdmission(ctx context.Context) error {
	select {
	case a.admitting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errAdmitting
	}
}

func (a *Advisor) unlockAdmission() { <-a.admitting }

// errAdmitting is the answer to a request that waited for another admission for too long.
var errAdmitting = &schemas.Error{
	Code:    schemas.CodeUnavailable,
	Message: "another job is being admitted; retry in a moment",
}

// readTicket returns the last ticket and its revision. The caller holds admitting.
func (a *Advisor) readTicket(ctx context.Context) (schemas.Ticket, uint64, error) {
	t, revision, err := a.bus.Ticket(ctx)
	if err == nil && (a.ticket.at.IsZero() || a.ticket.revision != revision) {
		a.ticket = seenTicket{revision, time.Now()}
	}
	return t, revision, err
}

// lastAdmission waits until the last admission has been applied here. It returns the revision of
// its ticket, which the next ticket must follow. If an admission is not recorded within
// schemas.SubmitTimeout after this advisor has seen its ticket, its advisor has given up or crashed. The
// caller holds admitting.
func (a *Advisor) lastAdmission(ctx context.Context) (uint64, error) {
	t, revision, err := a.readTicket(ctx)
	if err != nil || t.JobID == "" {
		return revision, err
	}
	patience, cancel := context.WithDeadline(ctx, a.ticket.at.Add(schemas.SubmitTimeout))
	defer cancel()
	for {
		a.mu.RLock()
		j, moved := a.cluster.Job(t.JobID), a.advanced
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
		return errAdmitting
	}
	return nil
}
