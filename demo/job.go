package demo

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"courier/bus"
	"courier/collector"
	"courier/runner"
	"courier/schemas"
)

// modelName and jobEpochs are the same for all jobs of the demo.
const (
	modelName = "digits-mlp"
	jobEpochs = 8
)

// jobRequest sets the fields that all requests of the demo have in common.
func jobRequest(q schemas.JobRequest) schemas.JobRequest {
	q.Model, q.Epochs, q.User = modelName, jobEpochs, "demo"
	q.BatchSizes, q.CPUs = batchSizes, schemas.CPUs{1}
	return q
}

// runJob runs the workload in a process of its own, as courier run does with the command of a user.
// It uses the advised batch size if batch is 0. It returns after the advisor has recorded the end of
// the job, so that the next job has no neighbour.
func (d *demo) runJob(ctx context.Context, q schemas.JobRequest, batch int, seed uint32) (runner.Result, error) {
	program, err := os.Executable()
	if err != nil {
		return runner.Result{}, fmt.Errorf("find this program: %w", err)
	}
	node, err := schemas.LocalNodeName()
	if err != nil {
		return runner.Result{}, err
	}
	command := []string{
		program, "workload", "digits",
		"--batch-size", "{batch}", "--cpus", "{cpus}", "--epochs", "{epochs}",
		"--augment", fmt.Sprint(d.copies),
		"--learning-rate", fmt.Sprintf("%.3g", rateTimesCopies/float64(d.copies)),
		"--seed", fmt.Sprint(seed),
	}

	printed := &lastOutput{}
	r, err := runner.Run(ctx, runner.Options{
		Request:   jobRequest(q),
		Node:      node,
		BatchSize: batch,
		NoPTY:     true,
		Observer:  collector.NewObserver(slog.New(slog.DiscardHandler)),
		SpoolDir:  d.o.SpoolDir,
		Command:   command,
		Stdout:    printed,
		Stderr:    printed,
		Connect:   func(context.Context) (*bus.Bus, error) { return d.o.Bus, nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return r, err
	}
	if r.ExitCode != 0 || len(r.Epochs) != jobEpochs {
		return r, fmt.Errorf("job %s ended with status %d after %d of %d epochs: %s",
			r.JobID, r.ExitCode, len(r.Epochs), jobEpochs, printed)
	}
	return r, d.awaitFinished(ctx, r.JobID)
}

// responseSeconds is the time from submission to end, to which the SLO applies.
func responseSeconds(r runner.Result) float64 { return r.Ended.Sub(r.Submitted).Seconds() }

// awaitFinished waits until the advisor has recorded the end of a job.
func (d *demo) awaitFinished(ctx context.Context, job string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	q := schemas.JobStatusRequest{JobID: job}
	err := poll(ctx, func() (done bool, err error) {
		var s schemas.JobStatus
		err = d.o.Bus.Request(ctx, schemas.SubjectJobStatus, &q, &s)
		return s.State == schemas.StateFinished, err
	})
	if err != nil {
		return fmt.Errorf("await the end of job %s: %w", job, err)
	}
	return nil
}

// poll asks until the answer is true or an error.
func poll(ctx context.Context, ask func() (done bool, err error)) error {
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		if err := bus.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// lastOutput keeps the end of the output of a job, for an error message.
type lastOutput struct{ b []byte }

func (o *lastOutput) Write(p []byte) (int, error) {
	o.b = append(o.b, p...)
	if len(o.b) > 2000 {
		o.b = o.b[len(o.b)-1000:]
	}
	return len(p), nil
}

func (o *lastOutput) String() string { return string(o.b) }
