package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"courier/bus"
	"courier/regress/table"
	"courier/schemas"
)

// runColumns are the columns of RunTable, a part of those of a study.
var runColumns = []string{
	"run_id", "model", "dataset", "batch_size", "cpus", "jobs", "epochs", "epochs_done",
	"total_seconds", "startup_seconds", "epoch_seconds", "accuracy", "cpu_utilization",
	"io_wait_ratio", "node", "started_at", "ended_at", "status",
}

// maxRuns is the number of runs of a table; the last ones are kept.
const maxRuns = 10_000

// ReadRuns reads the runs of the log that ended, up to its current end. See RunTable.
func ReadRuns(ctx context.Context, b *bus.Bus) (*table.Table, error) {
	r := newRunReader()
	err := b.Read(ctx, bus.FollowOptions{Stream: schemas.StreamJob}, func(e bus.Record) error {
		r.add(e.Event)
		return nil
	})
	if errors.Is(err, schemas.ErrNotFound) {
		return nil, fmt.Errorf("the server has no event log of courier: %w", err)
	}
	return r.table, err
}

// RunTable returns the last 10,000 runs that ended, by their end, as a table with the columns of a
// study. A run whose batch size changed is left out: it has no single configuration. The column
// jobs has the mean number of concurrent jobs, rounded to a whole number.
func (l *Log) RunTable() *table.Table {
	r := newRunReader()
	for i := range l.Records {
		r.add(l.Records[i].Event)
	}
	return r.table
}

// runReader turns events into a table of runs.
type runReader struct {
	table *table.Table
	open  map[runIdentity]*recordedRun
}

func newRunReader() *runReader {
	return &runReader{&table.Table{Header: runColumns}, map[runIdentity]*recordedRun{}}
}

func (r *runReader) add(event schemas.Event) {
	switch e := event.(type) {
	case *schemas.Started:
		if key := (runIdentity{e.JobID, e.Run}); r.open[key] == nil {
			r.open[key] = &recordedRun{started: e.At, batch: e.BatchSize}
		}
	case *schemas.Epoch:
		if run := r.open[runIdentity{e.JobID, e.Run}]; run != nil {
			run.add(e)
		}
	case *schemas.Ended:
		key := runIdentity{e.JobID, e.Run}
		run := r.open[key]
		if run == nil || e.Outcome == schemas.EventLost {
			return // A lost run may continue.
		}
		delete(r.open, key)
		if run.mixed || run.batch != e.BatchSize {
			return
		}
		if len(r.table.Rows) == maxRuns {
			r.table.Rows = r.table.Rows[1:]
		}
		r.table.Rows = append(r.table.Rows, run.row(e))
	}
}

type runIdentity struct {
	job string
	run uint32
}

// recordedRun is a run whose events are being read.
type recordedRun struct {
	started                           time.Time
	batch                             uint32
	mixed                             bool // epochs have different batch sizes
	last                              uint32
	seconds, jobs, utilization, waits mean
}

// mean is a mean of values that may be absent.
type mean struct{ sum, count float64 }

func (m *mean) add(x *float64) {
	if x != nil {
		m.sum, m.count = m.sum+*x, m.count+1
	}
}

// cell returns the mean; empty without values.
func (m *mean) cell() string {
	if m.count == 0 {
		return ""
	}
	return number(m.sum / m.count)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// add adds an epoch; a repeated or older one is skipped.
func (r *recordedRun) add(e *schemas.Epoch) {
	if e.Epoch <= r.last {
		return
	}
	r.last = e.Epoch
	r.mixed = r.mixed || e.BatchSize != r.batch
	r.seconds.add(&e.DurationSeconds)
	r.jobs.add(e.ConcurrentJobs)
	r.utilization.add(e.NodeCPURatio)
	r.waits.add(e.NodeIOWaitRatio)
}

func (r *recordedRun) row(e *schemas.Ended) []string {
	optional := func(x *float64) string {
		if x == nil {
			return ""
		}
		return number(*x)
	}
	jobs := ""
	if r.jobs.count > 0 {
		jobs = number(math.Round(r.jobs.sum / r.jobs.count))
	}
	total := ""
	if e.DurationSeconds > 0 {
		total = number(e.DurationSeconds)
	}
	status := e.Outcome
	if status == schemas.EventFinished && e.EpochsDone < e.Epochs {
		status = "incomplete"
	}
	count := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	return []string{
		e.JobID + "/" + count(e.Run), e.Model, e.Dataset, count(e.BatchSize), count(e.CPUs), jobs,
		count(e.Epochs), count(e.EpochsDone), total, optional(e.StartupSeconds), r.seconds.cell(),
		optional(e.Accuracy), r.utilization.cell(), r.waits.cell(), strings.Join(e.Nodes, "+"),
		r.started.UTC().Format(time.RFC3339Nano), e.At.UTC().Format(time.RFC3339Nano), status,
	}
}
