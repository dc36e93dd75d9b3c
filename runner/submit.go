package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// submit requests advice, waits until the job may start, and determines its configuration. It submits the
// job again if the reservation of its CPUs ends before the start. It returns an error if the request is
// rejected. An unreachable advisor is not an error.
func (j *job) submit(ctx context.Context) error {
	request := &j.o.Request
	mayHaveRun := request.JobID != ""
	for {
		if !mayHaveRun {
			request.JobID = newJobID(request.Model)
		}
		j.result.Run = 0 // the advisor ignores heartbeats of a run that has not started
		b, err := j.requestStart(ctx)
		if j.result.Run = 1; err == nil && mayHaveRun {
			err = j.numberRun(ctx, b)
		}
		if err == nil && j.isReservationOver(time.Now()) {
			err = errReservationOver
		}
		if !errors.Is(err, errReservationOver) {
			return err
		}
		cancelled := j.cancelUnstarted(ctx, b, err.Error())
		j.sendLastHeartbeat()
		if mayHaveRun {
			return otherID("%v", cancelled)
		}
		j.screen.message("%v; it is submitted again", cancelled)
	}
}

// requestStart submits the job, and waits until it may start.
func (j *job) requestStart(ctx context.Context) (*bus.Bus, error) {
	request := &j.o.Request
	j.result.JobID, j.result.Submitted = request.JobID, time.Now()
	j.reservedUntil = time.Time{}
	asking, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	b, err := j.conn.await(asking)
	if err == nil {
		j.result.Advice, err = requestAdvice(asking, b, request)
	}
	if b != nil {
		j.readSamples(asking, b)
	}
	if isRejection(err) {
		return b, err
	}
	if ctx.Err() != nil {
		return b, fmt.Errorf("submit job %s: %w", request.JobID, ctx.Err())
	}
	if advice := j.result.Advice; advice != nil {
		var refusal error
		if j.result.Advice, refusal = j.awaitStart(ctx, b, advice); refusal != nil {
			return b, refusal
		}
	}
	j.chooseSetting()
	j.printAdvice(err)
	return b, nil
}

// isRejection reports whether the advisor has rejected the request.
func isRejection(err error) bool {
	return errors.Is(err, schemas.ErrInvalid) || errors.Is(err, schemas.ErrConflict) ||
		errors.Is(err, schemas.ErrForbidden)
}

// requestAdvice submits the job and returns the advice.
func requestAdvice(ctx context.Context, b *bus.Bus, request *schemas.JobRequest) (*schemas.Advice, error) {
	advice := &schemas.Advice{}
	if err := b.Request(ctx, schemas.SubjectJobSubmit, request, advice); err != nil {
		return nil, err
	}
	if c := advice.Chosen; c == nil || c.CPUs == 0 || c.Epochs == 0 {
		return nil, errors.New("the advice has no chosen configuration")
	}
	return advice, nil
}

// numberRun sets the number of the run that is about to start. It returns an error if the job has
// finished or was cancelled, as its deadline is over and its result known, or if another runner still
// runs it: their epochs would be mixed. A job that failed or was lost runs again.
func (j *job) numberRun(ctx context.Context, b *bus.Bus) error {
	asked := time.Now()
	status, err := j.statusOf(ctx, b, j.result.JobID)
	switch {
	case errors.Is(err, schemas.ErrNotFound):
		return nil
	case err != nil:
		j.result.Run = unassignedRunNumber(time.Now())
		return nil
	}
	j.result.Run = status.Run + 1
	switch status.State {
	case schemas.StateFinished, schemas.StateCancelled:
		return otherID("job %s is %s already", status.JobID, status.State)
	case schemas.StateRunning:
	case schemas.StateSubmitted:
		if !j.reservedUntil.IsZero() { // the request may be an earlier one
			j.reservedUntil = asked.Add(durationOf(status.ReservedSeconds))
		}
		return nil
	default:
		j.reservedUntil = time.Time{} // it runs again, without the promise of its first run
		return nil
	}
	j.screen.message("job %s was running on %s: waiting %s for a heartbeat of that run", status.JobID,
		strings.Join(status.Nodes, ", "), schemas.FormatSeconds(heartbeatWait.Seconds()))
	replaying, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	j.conn.finish(replaying) // events of the killed runner are no sign of life
	if status, err = j.statusOf(ctx, b, j.result.JobID); err != nil || !j.isAlive(ctx, b, status) {
		return ctx.Err()
	}
	return otherID("job %s is running on %s (run %d)", status.JobID, strings.Join(status.Nodes, ", "), status.Run)
}

// otherID returns the refusal of a job whose ID is in use.
func otherID(format string, args ...any) error {
	message := fmt.Sprintf(format, args...) + "; use another id"
	return &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: message}
}

// heartbeatWait is the time in which a job that runs sends a heartbeat.
const heartbeatWait = schemas.Heartbeat + 2*time.Second

// isAlive reports whether something is heard of a job within heartbeatWait. A job whose runner was killed is
// not heard, and may be started again.
func (j *job) isAlive(ctx context.Context, b *bus.Bus, before *schemas.JobStatus) bool {
	ctx, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		now, err := j.statusOf(ctx, b, j.result.JobID)
		switch {
		case err != nil:
		case now.State != schemas.StateRunning:
			return false
		case now.LastSeenAt != nil && before.LastSeenAt != nil && now.LastSeenAt.After(*before.LastSeenAt):
			return true
		}
	}
}

// statusOf asks for the status of a job.
func (j *job) statusOf(ctx context.Context, b *bus.Bus, id string) (*schemas.JobStatus, error) {
	if b == nil {
		return nil, errNoBus
	}
	ctx, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	status := &schemas.JobStatus{}
	request := &schemas.JobStatusRequest{JobID: id}
	return status, b.Request(ctx, schemas.SubjectJobStatus, request, status)
}

// claimTimeout bounds how long a command waits for NATS before it starts.
const claimTimeout = 2 * time.Second

// claim publishes the start of the run. isPublished is false if NATS does not answer. It returns an error
// if another runner has started the same run at the same time.
func (j *job) claim(ctx context.Context, e *schemas.Started) (isPublished bool, err error) {
	b := j.conn.live()
	if b == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	sentAt := time.Now()
	_, err = b.Claim(ctx, e)
	switch {
	case isRejection(err):
		return false, err
	case err != nil:
		return false, nil
	}
	j.contact.Arrived(sentAt) // as a heartbeat, of which there are none while the job waits for loans
	return true, nil
}

// chooseSetting sets what the job runs with: the advised configuration, or else the first requested
// one. Options.BatchSize takes precedence.
func (j *job) chooseSetting() {
	request := j.o.Request.WithDefaults()
	s := &j.result.Setting
	*s = schemas.Setting{
		Model:           request.Model,
		Dataset:         request.Dataset,
		BatchSize:       uint32(request.BatchSizes[0]),
		CPUs:            uint32(request.CPUs[0]),
		Workers:         request.WorkerCounts()[0],
		Loaders:         request.FirstLoaders(),
		Epochs:          uint32(cmp.Or(request.Epochs, request.MaxEpochs)),
		TrainingSamples: request.TrainingSamples,
		Nodes:           request.Nodes,
	}
	if a := j.result.Advice; a != nil {
		s.BatchSize, s.CPUs, s.Epochs = a.Chosen.BatchSize, a.Chosen.CPUs, a.Chosen.Epochs
		s.Workers, s.Loaders = a.Chosen.Workers, a.Chosen.Loaders
	}
	if request.HasUnknownBatchSize() {
		s.BatchSize = 0 // it may have changed since an earlier job measured it
	}
	if j.o.BatchSize > 0 {
		s.BatchSize = uint32(j.o.BatchSize)
	}
}

// printAdvice prints the advice and the batch size. Without advice, the error is the reason.
func (j *job) printAdvice(adviceErr error) {
	s := &j.result.Setting
	switch a := j.result.Advice; {
	case a == nil && (j.o.OmitHints || j.o.Connect == nil):
	case a == nil:
		j.screen.message("job %s: no advice: %s", j.result.JobID, schemas.Plain(adviceErr))
		j.screen.message("running with %s", schemas.FormatBatchSize(s.BatchSize))
	case a.Chosen.BatchSize != s.BatchSize && s.BatchSize > 0:
		j.screen.print(adviceText(a))
		j.screen.message("running with batch size %d as requested, not the advised %d",
			s.BatchSize, a.Chosen.BatchSize)
	default:
		j.screen.print(adviceText(a))
	}
}
