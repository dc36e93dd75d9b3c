package advisor

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

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
	if len(a.queueQuestions(a.now())) == 0 {
		return false, nil
	}
	if err = a.lockAdmission(ctx); err != nil {
		return false, err
	}
	defer a.unlockAdmission()
	revision, err := a.lastAdmission(ctx)
	if err != nil {
		return false, err
	}
	now := a.now()
	var queue []*schemas.Advice
	elastic, requests := map[string]bool{}, map[string]*schemas.JobRequest{}
	for _, q := range a.queueQuestions(now) {
		requests[q.JobID] = &q.Request
		queued := decide.Decide(q, *a.regressors.Load(), now)
		queue = append(queue, queued)
		elastic[q.JobID] = a.sharesCPUs(&q.Request, queued)
	}
	mayUse := func(before *schemas.Advice, nodes []string) bool {
		a.mu.RLock()
		defer a.mu.RUnlock()
		return a.cluster.MayUse(requests[before.JobID], nodes, now)
	}
	advice := shares.NextToStart(queue, mayUse, func(queued *schemas.Advice, isFirst bool) *schemas.Advice {
		switch {
		case elastic[queued.JobID]:
			// Only a first job looks for another node: a long queue would ask for all nodes.
			return a.admitQueued(queued, isFirst)
		case shares.FitsNow(queued) && !a.needsBusyCPUs(queued):
			return queued
		case isFirst && a.o.MoveCPUs == MovesOn:
			return a.admitQueued(queued, true)
		}
		return nil
	})
	if advice == nil {
		return false, nil
	}
	err = a.admitNext(ctx, advice, revision)
	return err == nil, err
}

// admitNext records that a queued job may start, unless an advisor has admitted a job since the revision
// of the ticket was read.
func (a *Advisor) admitNext(ctx context.Context, advice *schemas.Advice, revision uint64) error {
	advice.Admission = cmp.Or(advice.Admission, shares.AdmittedByPromises(a.o.Admission))
	advice.EventID = schemas.AdmittedID(advice.JobID)
	// lastAdmission relies on this timeout.
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	ticket := schemas.Ticket{JobID: advice.JobID, Verdict: schemas.Admitted}
	err := a.bus.TakeTicket(ctx, ticket, revision)
	if errors.Is(err, schemas.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	sequence, first, err := a.bus.PublishOnce(ctx, schemas.NewJobAdmitted(advice))
	if err != nil {
		return err
	}
	if first {
		a.publish(ctx, advice)
	}
	a.metrics.admissions.WithLabelValues(a.o.Admission, string(schemas.Admitted)).Inc()
	a.waitFor(ctx, sequence)
	return nil
}

// admitQueued returns advice for a queued job that may start under the plan for the CPUs of its nodes,
// or nil.
func (a *Advisor) admitQueued(queued *schemas.Advice, everywhere bool) *schemas.Advice {
	return a.admitByShares(queued, everywhere, func(nodes []string, now time.Time) *decide.Question {
		j := a.cluster.Job(queued.JobID)
		if j == nil || j.State != schemas.StateQueued {
			return nil
		}
		return decide.AskQueued(a.cluster, nodes, j, now)
	})
}

// queueQuestions returns the questions of the first queued jobs for each set of nodes.
func (a *Advisor) queueQuestions(now time.Time) []*decide.Question {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var questions []*decide.Question
	of := map[string]int{}
	for _, j := range a.cluster.Queue() {
		nodes := strings.Join(j.Request.Nodes, " ")
		if of[nodes]++; of[nodes] > queueLookahead {
			continue
		}
		questions = append(questions, decide.AskQueued(a.cluster, a.cluster.Placement(j.Request, now), j, now))
		if len(questions) == maxQueueLookahead {
			break
		}
	}
	return questions
}

// The numbers of queued jobs that are examined to find one that fits: for each set of nodes, and of all.
const (
	queueLookahead    = 32
	maxQueueLookahead = 256
)
