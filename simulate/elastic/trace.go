package elastic

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"courier/regress/table"
)

// TraceJob is a row of a trace. Times are relative to the clock of the trace.
type TraceJob struct {
	ID         string
	Submitted  time.Duration
	Deadline   time.Duration
	Iterations float64 // at BatchSize
	Model      string
	BatchSize  int // global, over all GPUs
}

// Columns of a trace, in any order; others are ignored. They are those of ElasticFlow's traces.
const (
	columnID         = "job_id"
	columnSubmitted  = "submission_time"
	columnDeadline   = "deadline"
	columnIterations = "num_iteration"
	columnModel      = "model_name"
	columnBatchSize  = "batch_size"
)

// maxTraceSeconds bounds times, so that they are exact to a microsecond.
const maxTraceSeconds = 4e9

// ReadTraceFile reads a trace from a CSV file.
func ReadTraceFile(path string) ([]TraceJob, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	jobs, err := ReadTrace(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return jobs, nil
}

// ReadTrace reads a trace in order of submission. Jobs submitted at the same time keep their order.
func ReadTrace(r io.Reader) ([]TraceJob, error) {
	t, err := table.Read(r)
	if err != nil {
		return nil, err
	}
	row := &traceRow{index: map[string]int{}}
	for _, name := range []string{
		columnID, columnSubmitted, columnDeadline, columnIterations, columnModel, columnBatchSize,
	} {
		if row.index[name], err = t.Column(name); err != nil {
			return nil, err
		}
	}

	var jobs []TraceJob
	seen := map[string]bool{}
	for i := range t.Rows {
		row.cells = t.Rows[i]
		job, err := row.job()
		if err == nil && seen[job.ID] {
			err = fmt.Errorf("job %q occurs twice", job.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		seen[job.ID] = true
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, errors.New("the trace has no jobs")
	}
	slices.SortStableFunc(jobs, func(a, b TraceJob) int {
		return cmp.Compare(a.Submitted, b.Submitted)
	})
	return jobs, nil
}

// traceRow reads the cells of a row by the names of columns.
type traceRow struct {
	index map[string]int
	cells []string
}

func (r *traceRow) job() (TraceJob, error) {
	j := TraceJob{ID: r.text(columnID), Model: r.text(columnModel)}
	if j.ID == "" || j.Model == "" {
		return j, fmt.Errorf("missing %s or %s", columnID, columnModel)
	}
	var err error
	if j.Submitted, err = r.time(columnSubmitted); err != nil {
		return j, err
	}
	if j.Deadline, err = r.time(columnDeadline); err != nil {
		return j, err
	}
	if j.Iterations, err = r.number(columnIterations, math.MaxFloat64); err != nil {
		return j, err
	}
	j.BatchSize, err = strconv.Atoi(r.text(columnBatchSize))
	if err != nil || j.BatchSize < 1 || j.BatchSize > math.MaxInt32 {
		return j, fmt.Errorf("%s is %q, want a positive integer", columnBatchSize,
			r.text(columnBatchSize))
	}
	return j, nil
}

func (r *traceRow) text(column string) string { return r.cells[r.index[column]] }

func (r *traceRow) number(column string, most float64) (float64, error) {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil || !(v >= 0 && v <= most) {
		return 0, fmt.Errorf("%s is %q, want a number from 0 to %g", column, r.text(column), most)
	}
	return v, nil
}

func (r *traceRow) time(column string) (time.Duration, error) {
	seconds, err := r.number(column, maxTraceSeconds)
	return duration(seconds), err
}

// duration converts seconds, rounded to a microsecond.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}
