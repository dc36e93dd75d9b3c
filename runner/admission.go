package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// awaitStart waits until the admission policy of the cluster permits the job to start, and until the
// jobs that lend it CPUs have done so. It returns the advice for the job, or an error if the job is
// refused or cancelled, or if this process is stopped, which cancels the job.
func (j *job) awaitStart(ctx context.Context, b *bus.Bus, advice *schemas.Advice) (*schemas.Advice, error) {
	if advice.Admission == nil {
		return advice, nil
	}
	j.contact.Arrived(time.Now()) // CPUs are reserved, so silence counts before the first heartbeat
	j.reservedUntil = j.result.Submitted.Add(schemas.Reservation)
	waiting, stop := ctx, func() {}
	if j.o.ForwardSignals {
		waiting, stop = signal.NotifyContext(ctx, stopSignals()...)
	}
	defer stop()

	var err error
	switch advice.Admission.Verdict {
	case schemas.Refused:
		j.screen.print(adviceText(advice))
		message := fmt.Sprintf("job %s is %s", advice.JobID, advice.Message)
		return nil, &schemas.Error{Code: schemas.CodeConflict, Message: message}
	case schemas.Admitted:
		j.sendHeartbeat(ctx) // without it, a cancellation would free the CPUs before the job hears of it
	case schemas.Queued:
		j.screen.print(adviceText(advice))
		advice, err = j.awaitAdmission(waiting, b, advice)
	}
	if err == nil {
		err = j.awaitLoans(waiting, b, advice)
	}
	if waiting.Err() != nil {
		reason := "courier run was stopped"
		if ctx.Err() == nil {
			reason = context.Cause(waiting).Error() // names the signal
		}
		err = j.cancelUnstarted(ctx, b, reason)
	}
	if err != nil {
		j.sendLastHeartbeat()
		return nil, err
	}
	return advice, nil
}

// errReservationOver is the error of a job that was admitted, but has not started in time. Its CPUs may have
// been given to another job.
var errReservationOver = errors.New("its CPUs are not reserved any more, as it has not started in time")

// minReserved is the minimum time for which CPUs must still be reserved: enough for the start of a job.
const minReserved = 10 * time.Second

// isReservationOver reports whether the CPUs of an admitted job are not reserved for long enough.
func (j *job) isReservationOver(now time.Time) bool {
	return !j.reservedUntil.IsZero() && j.reservedUntil.Sub(now) < minReserved
}

const (
	// confirmInterval is the time until the advisor is asked again whether CPUs are reserved.
	confirmInterval = time.Second
	// confirmTimeout bounds the wait for its answer, which delays heartbeats.
	confirmTimeout = 2 * time.Second
)

// awaitAdmission waits in the queue, and returns the advice of the admission. It sends heartbeats,
// because a silent job is cancelled.
func (j *job) awaitAdmission(ctx context.Context, b *bus.Bus, queued *schemas.Advice) (*schemas.Advice, error) {
	j.screen.message("job %s is queued at position %d", queued.JobID, queued.Admission.Position)
	following, stop := context.WithCancel(ctx)
	defer stop()
	events := make(chan schemas.Event)
	j.conn.follow(following, events, queued.JobID, schemas.EventAdmitted, schemas.EventCancelled)
	heartbeat := time.NewTicker(schemas.Heartbeat)
	defer heartbeat.Stop()
	j.sendHeartbeat(ctx)

	var admitted *schemas.Advice
	var confirm <-chan time.Time // fires when the advisor must be asked about the reservation again
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-heartbeat.C:
			j.sendHeartbeat(ctx)
			continue
		case at := <-j.conn.beaten:
			j.contact.Arrived(at)
			continue
		case <-confirm:
		case e := <-events:
			if end, isEnd := e.(*schemas.Ended); isEnd {
				return nil, fmt.Errorf("job %s was cancelled in the queue: %s",
					end.JobID, cmp.Or(end.Reason, "by request"))
			}
			admitted = &e.(*schemas.JobAdmitted).Advice
		}
		if isKnown, err := j.checkReservation(ctx, b); isKnown || err != nil {
			return admitted, err
		}
		confirm = time.After(confirmInterval)
	}
}

// checkReservation asks the advisor, by whose clock reservations end, whether the CPUs of the admitted
// job are still reserved. It returns an error if they are not. isKnown is false if the advisor does not
// answer, or has not read the admission yet.
func (j *job) checkReservation(ctx context.Context, b *bus.Bus) (isKnown bool, err error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	status, err := j.statusOf(ctx, b, j.result.JobID)
	switch {
	case errors.Is(err, schemas.ErrNotFound):
		return true, errReservationOver
	case err != nil, status.State == schemas.StateQueued:
		return false, nil
	case status.State != schemas.StateSubmitted:
		return true, fmt.Errorf("job %s is %s: %s", status.JobID, status.State, status.Reason)
	}
	j.reservedUntil = asked.Add(durationOf(status.ReservedSeconds))
	if j.isReservationOver(time.Now()) {
		return true, errReservationOver
	}
	j.screen.message("job %s is admitted", status.JobID)
	return true, nil
}

// stopSignals are those of forwardedSignals that ask a program to end.
func stopSignals() []os.Signal {
	isOther := func(s os.Signal) bool { return !isTermination(s) }
	return slices.DeleteFunc(slices.Clone(forwardedSignals), isOther)
}

// cancelUnstarted cancels a job that waits, so that no capacity is reserved for it, and returns an
// error with the reason.
func (j *job) cancelUnstarted(ctx context.Context, b *bus.Bus, reason string) error {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.o.Patience)
	defer cancel()
	id := j.result.JobID
	var status schemas.JobStatus
	request := &schemas.JobCancelRequest{JobID: id, Reason: reason}
	if err := b.Request(asking, schemas.SubjectJobCancel, request, &status); err != nil {
		return fmt.Errorf("cancel the waiting job %s: %w", id, err)
	}
	return fmt.Errorf("job %s was cancelled before its start: %s", id, reason)
}
