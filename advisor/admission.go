package advisor

import (
	"context"
	"errors"
	"strings"
	"time"

	"courier/schemas"
)

// readPatience bounds how long a request waits for this advisor to read the log, or for
// the log to answer.
const readPatience = 2 * time.Second

// guards reports whether a policy may say no.
func (a *Advisor) guards() bool {
	return a.o.Admission == schemas.AdmissionProtect || a.o.Admission == schemas.AdmissionQueue
}

// admit answers a request under a policy that may say no. Decisions are made one
// after the other in the whole cluster: each knows all admissions before it.
func (a *Advisor) admit(ctx context.Context, request schemas.JobRequest) (*schemas.Advice, error) {
	a.admitting.Lock()
	defer a.admitting.Unlock()
	for {
		revision, err := a.lastAdmission(ctx)
		if err != nil {
			return nil, err
		}
		advice := a.answer(request)
		judge(advice, a.o.Admission, a.waits())
		if v := advice.Admission.Verdict; v != schemas.Refused { // which changes nothing for others
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

// lastAdmission waits until the last admission is known here, and returns the
// revision that the next one has to follow. An admission that is not recorded within
// schemas.SubmitTimeout of its ticket never will be: its advisor gave up or died.
func (a *Advisor) lastAdmission(ctx context.Context) (uint64, error) {
	t, revision, err := a.bus.Ticket(ctx)
	if err != nil || t.JobID == "" {
		return revision, err
	}
	patience, cancel := context.WithDeadline(ctx, t.At.Add(schemas.SubmitTimeout))
	defer cancel()
	for {
		a.mu.RLock()
		j, moved := a.cluster.jobs[t.JobID], a.moved
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

// readToTheEnd waits until this advisor has read what the log holds now.
func (a *Advisor) readToTheEnd(ctx context.Context) error {
	last, err := a.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return err
	}
	a.waitFor(ctx, last)
	if ctx.Err() != nil {
		return &schemas.Error{
			Code:    schemas.CodeUnavailable,
			Message: "another advisor admits a job; retry in a moment",
		}
	}
	return nil
}

// judge writes down what a policy says to a job that would start now, while
// others wait.
func judge(advice *schemas.Advice, policy string, waits int) {
	v := &schemas.Admission{Policy: policy, Verdict: schemas.Admitted, Breaks: brokenBy(advice)}
	advice.Admission = v
	switch {
	case policy == schemas.AdmissionProtect && len(v.Breaks) > 0:
		v.Verdict = schemas.Refused
		advice.Message = "refused, as it would break the promise to " + names(v.Breaks) + ": " +
			advice.Message
	case policy == schemas.AdmissionQueue && (waits > 0 || !fits(advice)):
		v.Verdict, v.Position = schemas.Queued, waits+1
		if start := waiting(advice); waits == 0 && start > 0 {
			v.StartSeconds = &start
		}
		why := "others wait before it"
		switch {
		case len(v.Breaks) > 0:
			why = "a start now would break the promise to " + names(v.Breaks)
		case waits == 0:
			why = "started later it keeps its own SLO"
		}
		advice.Message = "queued, as " + why + ": " + advice.Message
	}
}

// names lists a few jobs.
func names(jobs []string) string {
	if len(jobs) > 3 {
		return strings.Join(jobs[:3], ", ") + " and others"
	}
	return strings.Join(jobs, ", ")
}

// keepQueue starts waiting jobs when they fit, until ctx ends.
func (a *Advisor) keepQueue(ctx context.Context) error {
	tick := time.NewTicker(a.o.Check)
	defer tick.Stop()
	for {
		a.mu.RLock()
		moved := a.moved
		a.mu.RUnlock()
		if a.Ready() == nil && a.o.Admission == schemas.AdmissionQueue {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = a.next(ctx); err != nil && ctx.Err() == nil {
					a.log.Warn("the queue waits on", "error", err)
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

// next starts the waiting job whose turn it is, if there is one; more is true if
// another may follow. Several advisors may try: the ticket lets one through.
func (a *Advisor) next(ctx context.Context) (more bool, err error) {
	if len(a.looked(time.Now().UTC())) == 0 {
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
	for _, q := range a.looked(now) {
		queue = append(queue, Decide(q, *a.regressors.Load(), now))
	}
	advice := turn(queue)
	if advice == nil {
		return false, nil
	}
	advice.Admission = &schemas.Admission{Policy: a.o.Admission, Verdict: schemas.Admitted}
	advice.EventID = schemas.AdmittedID(advice.JobID)
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout) // as lastAdmission expects
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

// looked are the questions of the first waiting jobs.
func (a *Advisor) looked(now time.Time) []*Question {
	a.mu.RLock()
	defer a.mu.RUnlock()
	queue := a.cluster.queue()
	questions := make([]*Question, 0, min(len(queue), mostLooked))
	for _, j := range queue[:min(len(queue), mostLooked)] {
		questions = append(questions, a.cluster.asked(j, now))
	}
	return questions
}
