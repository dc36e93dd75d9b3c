package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// submit asks the advisor, tells the user, and settles what the job runs with.
// Its error is a refusal: the request itself is wrong. That nobody answers is
// no error.
func (j *job) submit(ctx context.Context) error {
	request := &j.o.Request
	known := request.JobID != "" // perhaps it has run before
	if !known {
		request.JobID = newJobID(request.Model)
	}
	j.result.JobID, j.result.Submitted = request.JobID, time.Now()
	asking, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	b, err := j.link.await(asking)
	if err == nil {
		j.result.Advice, err = ask(asking, b, request)
	}
	if b != nil {
		j.lookUp(asking, b)
	}
	if errors.Is(err, schemas.ErrInvalid) || errors.Is(err, schemas.ErrConflict) || errors.Is(err, schemas.ErrForbidden) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("submit job %s: %w", request.JobID, ctx.Err())
	}
	if a := j.result.Advice; a != nil {
		if j.result.Advice, err = j.admission(ctx, b, a); err != nil {
			return err
		}
	}
	j.settle()
	j.announce(err)
	j.result.Run = 1
	if known {
		asking, cancel := context.WithTimeout(ctx, j.o.Patience)
		defer cancel()
		j.result.Run = nextRun(asking, b, request.JobID)
	}
	return nil
}

// ask submits the job and returns the advice.
func ask(ctx context.Context, b *bus.Bus, request *schemas.JobRequest) (*schemas.Advice, error) {
	advice := &schemas.Advice{}
	if err := b.Request(ctx, schemas.SubjectJobSubmit, request, advice); err != nil {
		return nil, err
	}
	if c := advice.Chosen; c == nil || c.BatchSize == 0 || c.CPUs == 0 || c.Epochs == 0 {
		return nil, errors.New("the advice names nothing to run")
	}
	return advice, nil
}

// nextRun returns the number of the run that is about to start.
func nextRun(ctx context.Context, b *bus.Bus, job string) uint32 {
	if b == nil {
		return unknownRun(time.Now())
	}
	var status schemas.JobStatus
	err := b.Request(ctx, schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: job}, &status)
	switch {
	case err == nil:
		return status.Run + 1
	case errors.Is(err, schemas.ErrNotFound):
		return 1
	}
	return unknownRun(time.Now())
}

// settle decides what the job runs with: what was advised, else the first of
// what was asked for; a batch size given by the user wins.
func (j *job) settle() {
	request := j.o.Request.WithDefaults()
	s := &j.result.Setting
	*s = schemas.Setting{Model: request.Model, BatchSize: uint32(request.BatchSizes[0]), CPUs: uint32(request.CPUs[0]), Epochs: uint32(cmp.Or(request.Epochs, request.MaxEpochs)),
		TrainingSamples: request.TrainingSamples, Nodes: request.Nodes}
	if a := j.result.Advice; a != nil {
		c := a.Chosen
		s.BatchSize, s.CPUs, s.Epochs = c.BatchSize, c.CPUs, c.Epochs
	}
	if j.o.BatchSize > 0 {
		s.BatchSize = uint32(j.o.BatchSize)
	}
}

// announce tells the user what was advised and what is run.
func (j *job) announce(noAdvice error) {
	s := &j.result.Setting
	switch a := j.result.Advice; {
	case a == nil:
		j.screen.say("job %s: no advice: %s", j.result.JobID, plainly(noAdvice))
		j.screen.say("running with batch size %d", s.BatchSize)
	case a.Chosen.BatchSize != s.BatchSize:
		j.screen.print(adviceText(a))
		j.screen.say("running with batch size %d as told, not the advised %d", s.BatchSize, a.Chosen.BatchSize)
	default:
		j.screen.print(adviceText(a))
	}
}

// plainly returns an error in the words for a user, without its cause.
func plainly(err error) string {
	var e *schemas.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
