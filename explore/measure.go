package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"courier/bus"
	"courier/runner"
	"courier/schemas"
)

// Runner measures blocks by running the command of a study on this node.
type Runner struct {
	Dir      string                                  // directory of the study, for the output of the jobs
	Options  Options                                 // of the study
	Job      runner.Options                          // for each job: node, formats, observer
	Connect  func(context.Context) (*bus.Bus, error) // nil: the runs are not published
	Messages func(runID, text string)                // what courier run would print
	Log      *slog.Logger
}

// Placeholders of a study in a command, besides those of package runner.
const (
	gpusPlaceholder        = "{gpus}"
	replicationPlaceholder = "{replication}"
)

// Block runs the jobs of a block. Their commands start together, after all of them are ready. A job
// that fails has a record with StatusFailed. An error means that a job could not be started.
func (m *Runner) Block(ctx context.Context, b Block) ([]MeasuredRun, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ready, jobs sync.WaitGroup
	ready.Add(b.Jobs)
	all := make(chan struct{})
	jobs.Go(func() { ready.Wait(); close(all) })

	records, failures := make([]MeasuredRun, b.Jobs), make([]error, b.Jobs)
	for i := range b.Jobs {
		jobs.Go(func() {
			isReady := sync.OnceFunc(ready.Done)
			defer isReady() // a job that does not start must not stop the others
			await := func() {
				isReady()
				select {
				case <-all:
				case <-ctx.Done():
				}
			}
			records[i], failures[i] = m.job(ctx, b, i+1, await)
			if failures[i] != nil {
				cancel(failures[i])
			}
		})
	}
	jobs.Wait()
	return records, errors.Join(failures...)
}

// job runs one job of a block. It calls await directly before its command starts.
func (m *Runner) job(ctx context.Context, b Block, number int, await func()) (MeasuredRun, error) {
	r := MeasuredRun{Block: b, Job: number, Epochs: m.Options.Epochs, NodeProcesses: b.Jobs * b.processes()}
	path := filepath.Join(m.Dir, "logs", r.RunID()+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return r, err
	}
	out, err := os.Create(path)
	if err != nil {
		return r, err
	}
	var messages bytes.Buffer
	result, err := runner.Run(ctx, m.options(b, await, out, &messages), m.Log)
	err = errors.Join(err, out.Close())
	if err != nil {
		return r, fmt.Errorf("run %s: %w", r.RunID(), err)
	}
	r.fill(&result)
	if m.Messages != nil && r.Status != StatusFinished && ctx.Err() == nil { // else it was stopped
		m.Messages(r.RunID(), strings.TrimSpace(messages.String()))
		if r.Status == StatusFailed {
			m.Messages(r.RunID(), fmt.Sprintf("exit code %d; the end of %s:\n%s",
				result.ExitCode, path, endOf(path)))
		}
	}
	return r, nil
}

// options returns the options of a job.
func (m *Runner) options(b Block, await func(), out *os.File, messages *bytes.Buffer) runner.Options {
	o := m.Job
	o.Command = runner.FillPlaceholders(m.Options.Command,
		gpusPlaceholder, strconv.Itoa(b.GPUs), replicationPlaceholder, strconv.Itoa(b.Replication))
	o.Request = schemas.JobRequest{
		Model:      m.Options.Model,
		Dataset:    m.Options.Dataset,
		BatchSizes: []int{b.BatchSize},
		CPUs:       schemas.CPUs{b.CPUs},
		Workers:    schemas.Workers{b.Workers},
		Epochs:     m.Options.Epochs,
		User:       m.Job.Request.User,
	}
	o.BatchSize = b.BatchSize
	o.SpoolDir = filepath.Join(m.Dir, "spool")
	o.NoPTY, o.Stdout, o.Stderr = true, out, messages
	o.Connect, o.BeforeStart = m.Connect, await
	return o
}

// fill sets the figures of a run.
func (r *MeasuredRun) fill(result *runner.Result) {
	r.Node = strings.Join(result.Setting.Nodes, " ")
	r.StartedAt, r.EndedAt = result.Started, result.Ended
	r.TotalSeconds = result.Ended.Sub(result.Started).Seconds()
	if s := result.StartupSeconds; s != nil {
		r.StartupSeconds = *s
	}
	busy, waiting, seconds := 0.0, 0.0, 0.0
	for i := range result.Epochs {
		e := &result.Epochs[i]
		r.EpochsDone = int(e.Epoch)
		r.Curve = append(r.Curve, EpochPoint{int(e.Epoch), e.DurationSeconds, e.Loss, e.Accuracy})
		if e.Loss != nil {
			r.Loss = e.Loss
		}
		if e.NodeCPURatio != nil && e.NodeIOWaitRatio != nil {
			seconds += e.DurationSeconds
			busy += e.DurationSeconds * *e.NodeCPURatio
			waiting += e.DurationSeconds * *e.NodeIOWaitRatio
		}
	}
	r.Accuracy = result.Accuracy
	if seconds > 0 {
		busy, waiting = busy/seconds, waiting/seconds
		r.CPUUtilization, r.IOWaitRatio = &busy, &waiting
	}
	switch {
	case result.ExitCode != 0 || result.Cancelled:
		r.Status = StatusFailed
	case r.EpochsDone < r.Epochs:
		r.Status = StatusIncomplete
	default:
		r.Status = StatusFinished
	}
}

// endOf returns the last lines of a file.
func endOf(path string) string {
	const lines = 8
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// ModelOf returns a name for the model of a command: that of its first file without an extension.
func ModelOf(command []string) string {
	for _, argument := range command[min(1, len(command)):] {
		if base := filepath.Base(argument); len(base) > 1 && strings.Contains(base, ".") && argument[0] != '-' {
			return strings.TrimSuffix(base, filepath.Ext(base))
		}
	}
	if len(command) == 0 {
		return "model"
	}
	return filepath.Base(command[0])
}
