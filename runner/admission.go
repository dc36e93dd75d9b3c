package runner

import (
	"cmp"
	"context"
	"fmt"
	"os/signal"
	"time"

	"courier/bus"
	"courier/schemas"
)

// awaitAdmission waits until the admission policy of the cluster permits the job to start, and
// returns the advice for it. It returns an error if the job is refused or cancelled, or if this
// process is stopped, which cancels the job.
func (j *job) awaitAdmission(ctx context.Context, b *bus.Bus, advice *schemas.Advice) (*schemas.Advice, error) {
	admission := advice.Admission
	if admission == nil {
		return advice, nil
	}
	j.contact.Arrived(time.Now()) // CPUs are reserved from now on, so that silence counts before the first heartbeat
	if admission.Verdict == schemas.Admitted {
		return advice, nil
	}
	j.screen.print(adviceText(advice))
	if admission.Verdict == schemas.Refused {
		message := fmt.Sprintf("job %s is %s", advice.JobID, advice.Message)
		return nil, &schemas.Error{Code: schemas.CodeConflict, Message: message}
	}

	j.screen.message("job %s is queued at position %d", advice.JobID, admission.Position)
	if j.o.ForwardSignals {
		signal.Notify(j.signals, forwardedSignals...)
		defer signal.Stop(j.signals)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	events := make(chan schemas.Event)
	j.conn.follow(waiting, events, advice.JobID, schemas.EventAdmitted, schemas.EventCancelled)
	heartbeat := time.NewTicker(schemas.Heartbeat)
	defer heartbeat.Stop()
	j.sendHeartbeat(waiting)
	for {
		select {
		case <-heartbeat.C:
			j.sendHeartbeat(waiting)
		case at := <-j.conn.beaten:
			j.contact.Arrived(at)
		case e := <-events:
			switch e := e.(type) {
			case *schemas.JobAdmitted:
				j.screen.message("job %s is admitted", e.JobID)
				return &e.Advice, nil
			case *schemas.Ended:
				return nil, fmt.Errorf("job %s was cancelled in the queue: %s",
					e.JobID, cmp.Or(e.Reason, "by request"))
			}
		case s := <-j.signals:
			if isTermination(s) {
				return nil, j.cancelUnstarted(ctx, b, inQueue, fmt.Sprintf("interrupted by signal: %v", s))
			}
		case <-ctx.Done():
			return nil, j.cancelUnstarted(ctx, b, inQueue, "courier run was stopped")
		}
	}
}

// inQueue is where a job was cancelled that waited for its admission.
const inQueue = "in the queue"

// cancelUnstarted cancels a job that waits, so that no capacity is reserved for it, and returns an
// error with the reason.
func (j *job) cancelUnstarted(ctx context.Context, b *bus.Bus, where, reason string) error {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.o.Patience)
	defer cancel()
	id := j.result.JobID
	var status schemas.JobStatus
	request := &schemas.JobCancelRequest{JobID: id, Reason: reason}
	if err := b.Request(asking, schemas.SubjectJobCancel, request, &status); err != nil {
		return fmt.Errorf("cancel the waiting job %s: %w", id, err)
	}
	return fmt.Errorf("job %s was cancelled %s: %s", id, where, reason)
}
