package runner

import (
	"context"
	"errors"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	maxLoanWait = schemas.Reservation / 2
	// maxWaitRatio is the ratio of the slack of the SLO that the wait may use.
	maxWaitRatio = 0.5
	loanPoll     = 250 * time.Millisecond
)

// awaitLoans waits until the jobs that lend CPUs to this one hold no more than their loans leave
// them. Until then the CPUs are in use, and both jobs would be slower than predicted. The lenders
// change their CPUs between two epochs, so the wait is bounded: after maxLoanWait, or half of the
// slack of the SLO, the job starts although they still use the CPUs.
func (j *job) awaitLoans(ctx context.Context, b *bus.Bus, advice *schemas.Advice) error {
	if advice.Admission == nil || len(advice.Admission.Loans) == 0 {
		return nil
	}
	longest := time.NewTimer(loanWait(advice))
	defer longest.Stop()
	tick := time.NewTicker(loanPoll)
	defer tick.Stop()
	isAnnounced := false
	for {
		lender := j.pendingLender(ctx, b, advice.Admission.Loans)
		if lender == "" {
			return nil
		}
		if !isAnnounced {
			j.screen.message("job %s waits until job %s has lent its CPUs", advice.JobID, lender)
			isAnnounced = true
		}
		select {
		case <-tick.C:
		case <-longest.C:
			j.screen.message("job %s starts although job %s has not lent its CPUs yet", advice.JobID, lender)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loanWait returns how long the start of a job may wait for its loans.
func loanWait(advice *schemas.Advice) time.Duration {
	c := advice.Chosen
	if advice.SLOSeconds == 0 || c == nil || c.UpperBoundSeconds == nil {
		return maxLoanWait
	}
	slack := advice.SLOSeconds - advice.ElapsedSeconds - *c.UpperBoundSeconds
	wait := min(maxLoanWait.Seconds(), max(0, maxWaitRatio*slack))
	return time.Duration(wait * float64(time.Second))
}

// pendingLender returns a job that runs with more CPUs than its loan leaves it; empty if there is
// none. If the advisor does not answer, the loan counts as pending.
func (j *job) pendingLender(ctx context.Context, b *bus.Bus, loans []schemas.Loan) string {
	for _, l := range loans {
		status, err := j.statusOf(ctx, b, l.JobID)
		switch {
		case errors.Is(err, schemas.ErrNotFound):
		case err != nil, status.State == schemas.StateRunning && status.CPUs > l.ToCPUs:
			return l.JobID
		}
	}
	return ""
}
