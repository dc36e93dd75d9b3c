package elastic

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
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

var errNoJobs = errors.New("the trace has no jobs")

// ReadTrace reads a trace in order of submission. Jobs submitted at the same time keep their order.
func ReadTrace(r io.Reader) ([]TraceJob, error) {
	in := csv.NewReader(withoutMark(r))
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errNoJobs
	}
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	row, err := newTraceRow(header)
	if err != nil {
		return nil, err
	}

	var jobs []TraceJob
	seen := map[string]bool{}
	for {
		row.cells, err = in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		job, err := row.job()
		if err == nil && seen[job.ID] {
			err = fmt.Errorf("job %q occurs twice", job.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		seen[job.ID] = true
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, errNoJobs
	}
	slices.SortStableFunc(jobs, func(a, b TraceJob) int {
		return cmp.Compare(a.Submitted, b.Submitted)
	})
	return jobs, nil
}

// withoutMark skips a byte order mark, with which some programs begin a text in UTF-8.
func withoutMark(r io.Reader) *bufio.Reader {
	in := bufio.NewReader(r)
	if start, _ := in.Peek(3); string(start) == "\ufeff" {
		_, _ = in.Discard(3) // these bytes are buffered
	}
	return in
}

// traceRow reads the cells of a row by the names of columns.
type traceRow struct {
	index map[string]int
	cells []string
}

func newTraceRow(header []string) (*traceRow, error) {
	row := &traceRow{index: map[string]int{}}
	for i, name := range header {
		if slices.Contains(header[:i], name) && name != "" {
			return nil, fmt.Errorf("column %q occurs twice in the header", name)
		}
		row.index[name] = i
	}
	for _, name := range []string{
		columnID, columnSubmitted, columnDeadline, columnIterations, columnModel, columnBatchSize,
	} {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("missing column %q; the columns are %s", name,
				strings.Join(header, ", "))
		}
	}
	return row, nil
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
