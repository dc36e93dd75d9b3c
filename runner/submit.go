package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// submit requests advice, waits for the admission of the job, and determines its configuration. It
// returns an error if the request is rejected. An unreachable advisor is not an error.
func (j *job) submit(ctx context.Context) error {
	request := &j.o.Request
	mayHaveRun := request.JobID != ""
	if !mayHaveRun {
		request.JobID = newJobID(request.Model)
	}
	j.result.JobID, j.result.Submitted = request.JobID, time.Now()

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
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("submit job %s: %w", request.JobID, ctx.Err())
	}

	if advice := j.result.Advice; advice != nil {
		var admitErr error
		if j.result.Advice, admitErr = j.awaitAdmission(ctx, b, advice); admitErr != nil {
			return admitErr
		}
		if err := j.awaitLoans(ctx, b, j.result.Advice); err != nil {
			return err
		}
	}
	j.chooseSetting()
	j.printAdvice(err)
	j.result.Run = 1
	if mayHaveRun {
		asking, cancel := context.WithTimeout(ctx, j.o.Patience)
		defer cancel()
		j.result.Run = nextRunNumber(asking, b, request.JobID)
	}
	return nil
}

// isRejection reports whether the advisor has rejected the request.
func isRejection(err error) bool {
	return errors.Is(err, schemas.ErrInvalid) ||
		errors.Is(err, schemas.ErrConflict) ||
		errors.Is(err, schemas.ErrForbidden)
}

// requestAdvice submits the job and returns the advice.
func requestAdvice(
	ctx context.Context,
	b *bus.Bus,
	request *schemas.JobRequest,
) (*schemas.Advice, error) {
	advice := &schemas.Advice{}
	if err := b.Request(ctx, schemas.SubjectJobSubmit, request, advice); err != nil {
		return nil, err
	}
	if c := advice.Chosen; c == nil || c.BatchSize == 0 || c.CPUs == 0 || c.Epochs == 0 {
		return nil, errors.New("the advice has no chosen configuration")
	}
	return advice, nil
}

// nextRunNumber returns the number of the run that is about to start.
func nextRunNumber(ctx context.Context, b *bus.Bus, job string) uint32 {
	if b == nil {
		return unassignedRunNumber(time.Now())
	}
	var status schemas.JobStatus
	request := &schemas.JobStatusRequest{JobID: job}
	err := b.Request(ctx, schemas.SubjectJobStatus, request, &status)
	switch {
	case err == nil:
		return status.Run + 1
	case errors.Is(err, schemas.ErrNotFound):
		return 1
	}
	return unassignedRunNumber(time.Now())
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
		Epochs:          uint32(cmp.Or(request.Epochs, request.MaxEpochs)),
		TrainingSamples: request.TrainingSamples,
		Nodes:           request.Nodes,
	}
	if a := j.result.Advice; a != nil {
		s.BatchSize, s.CPUs, s.Epochs = a.Chosen.BatchSize, a.Chosen.CPUs, a.Chosen.Epochs
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
		j.screen.message("job %s: no advice: %s", j.result.JobID, userMessage(adviceErr))
		j.screen.message("running with batch size %d", s.BatchSize)
	case a.Chosen.BatchSize != s.BatchSize:
		j.screen.print(adviceText(a))
		j.screen.message("running with batch size %d as requested, not the advised %d",
			s.BatchSize, a.Chosen.BatchSize)
	default:
		j.screen.print(adviceText(a))
	}
}

// userMessage returns an error as a message for a user, without its cause.
func userMessage(err error) string {
	var e *schemas.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
