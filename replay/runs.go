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

// runColumns are the columns of ReadRuns, a part of those of a study.
var runColumns = []string{
	"run_id", "model", "dataset", "batch_size", "cpus", "jobs", "epochs", "epochs_done",
	"total_seconds", "startup_seconds", "epoch_seconds", "accuracy", "cpu_utilization",
	"io_wait_ratio", "node", "started_at", "ended_at", "status",
}

// maxRuns is the number of runs of a table; the last ones are kept.
const maxRuns = 10_000

// ReadRuns reads the last 10,000 runs of the log that ended, by their end, as a table with the
// columns of a study. A run whose batch size changed is left out: it has no single configuration.
// The column jobs has the mean number of concurrent jobs, rounded to a whole number.
func ReadRuns(ctx context.Context, b *bus.Bus) (*table.Table, error) {
	r := &runReader{&table.Table{Header: runColumns}, map[runIdentity]*recordedRun{}}
	err := b.Read(ctx, bus.FollowOptions{Stream: schemas.StreamJob}, func(e bus.Record) error {
		r.add(e.Event)
		return nil
	})
	if errors.Is(err, schemas.ErrNotFound) {
		return nil, fmt.Errorf("the server has no event log of courier: %w", err)
	}
	return r.table, err
}

type runReader struct {
	table *table.Table
	open  map[runIdentity]*recordedRun
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
		if run == nil || e.Outcome == schemas.EventLost || e.Outcome == schemas.EventFound {
			return // A lost run may continue.
		}
		delete(r.open, key)
		if !run.mixed && run.batch == e.BatchSize {
			rows := append(r.table.Rows, run.row(e))
			r.table.Rows = rows[max(0, len(rows)-maxRuns):]
		}
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

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

// addKnown adds a value that may be absent.
func (m *mean) addKnown(x *float64) {
	if x != nil {
		m.add(*x)
	}
}

// value returns nil without values.
func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	return new(m.sum / float64(m.n))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// optional formats a number; empty for nil.
func optional(x *float64) string {
	if x == nil {
		return ""
	}
	return number(*x)
}

// add adds an epoch; a repeated or older one is skipped.
func (r *recordedRun) add(e *schemas.Epoch) {
	if e.Epoch <= r.last {
		return
	}
	r.last = e.Epoch
	r.mixed = r.mixed || e.BatchSize != r.batch
	r.seconds.add(e.DurationSeconds)
	r.jobs.addKnown(e.ConcurrentJobs)
	r.utilization.addKnown(e.NodeCPURatio)
	r.waits.addKnown(e.NodeIOWaitRatio)
}

func (r *recordedRun) row(e *schemas.Ended) []string {
	jobs := r.jobs.value()
	if jobs != nil {
		*jobs = math.Round(*jobs)
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
		e.JobID + "/" + count(e.Run), e.Model, e.Dataset, count(e.BatchSize), count(e.CPUs), optional(jobs),
		count(e.Epochs), count(e.EpochsDone), total, optional(e.StartupSeconds), optional(r.seconds.value()),
		optional(e.Accuracy), optional(r.utilization.value()), optional(r.waits.value()), strings.Join(e.Nodes, "+"),
		r.started.UTC().Format(time.RFC3339Nano), e.At.UTC().Format(time.RFC3339Nano), status,
	}
}
