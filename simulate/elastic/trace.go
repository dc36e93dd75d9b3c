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

// maxTraceSeconds bounds times, so that they are exact to a microsecond.
const maxTraceSeconds = 4e9

// ReadTraceFile reads a trace from a CSV file.
func ReadTraceFile(path string, columns TraceColumns) ([]TraceJob, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	jobs, err := ReadTrace(file, columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return jobs, nil
}

// ReadTrace reads a trace in order of submission. Jobs submitted at the same time keep their order.
func ReadTrace(r io.Reader, columns TraceColumns) ([]TraceJob, error) {
	var jobs []TraceJob
	err := eachRow(r, &columns, columns.withDeadlines, func(row *traceRow) error {
		job, err := row.job()
		jobs = append(jobs, job)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errNoJobs
	}
	slices.SortStableFunc(jobs, func(a, b TraceJob) int {
		return cmp.Compare(a.Submitted, b.Submitted)
	})
	return jobs, nil
}

var errNoJobs = errors.New("the trace has no jobs")

// WriteTrace writes jobs as a CSV file that ReadTrace reads.
func WriteTrace(out io.Writer, jobs []TraceJob) error {
	w := csv.NewWriter(out)
	c := DefaultColumns()
	_ = w.Write([]string{c.ID, c.Submitted, c.Iterations, c.Model, c.BatchSize, c.Deadline}) // kept until Flush
	for _, j := range jobs {
		_ = w.Write([]string{
			j.ID, seconds(j.Submitted), strconv.FormatFloat(j.Iterations, 'f', -1, 64), j.Model,
			strconv.Itoa(j.BatchSize), seconds(j.Deadline),
		})
	}
	w.Flush()
	return w.Error()
}

// withoutMark skips a byte order mark, with which some programs begin a text in UTF-8.
func withoutMark(r io.Reader) *bufio.Reader {
	in := bufio.NewReader(r)
	if start, _ := in.Peek(3); string(start) == "\ufeff" {
		_, _ = in.Discard(3) // these bytes are buffered
	}
	return in
}

// eachRow reads the rows of a CSV file whose header has the needed columns. IDs are unique.
func eachRow(
	r io.Reader, columns *TraceColumns, needed func(header []string) []*string,
	read func(row *traceRow) error,
) error {
	text := withoutMark(r)
	if start, _ := text.Peek(1); string(start) == "[" || string(start) == "{" {
		return errors.New("the trace is JSON, want CSV: only --format philly reads JSON")
	}
	in := csv.NewReader(text)
	in.ReuseRecord = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errNoJobs
	}
	if err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	row, err := newTraceRow(header, columns, needed(header))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for {
		row.cells, err = in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := in.FieldPos(0)
		id := strings.Clone(row.text(columns.ID))
		if seen[id] {
			return fmt.Errorf("line %d: job %q occurs twice", line, id)
		}
		seen[id] = true
		if err := read(row); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// traceRow reads the cells of a row by the names of columns.
type traceRow struct {
	columns *TraceColumns
	index   map[string]int
	cells   []string
}

func (r *traceRow) job() (TraceJob, error) {
	j := TraceJob{ID: r.text(r.columns.ID), Model: r.text(r.columns.Model)}
	if j.ID == "" || j.Model == "" {
		return j, fmt.Errorf("missing %s or %s", r.columns.ID, r.columns.Model)
	}
	var err error
	if j.Submitted, err = r.time(r.columns.Submitted); err != nil {
		return j, err
	}
	if j.Deadline, err = r.time(r.columns.Deadline); err != nil {
		return j, err
	}
	if j.Iterations, err = r.number(r.columns.Iterations); err != nil {
		return j, err
	}
	batch, err := r.number(r.columns.BatchSize)
	if err != nil {
		return j, err
	}
	if batch < 1 || batch != math.Trunc(batch) || batch > math.MaxInt32 {
		return j, fmt.Errorf("%s is %g, want a positive integer", r.columns.BatchSize, batch)
	}
	j.BatchSize = int(batch)
	return j, nil
}

func (r *traceRow) text(column string) string {
	if i, ok := r.index[column]; ok {
		return r.cells[i]
	}
	return ""
}

func (r *traceRow) number(column string) (float64, error) {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is %q, want a number that is not negative", column, r.text(column))
	}
	return v, nil
}

func (r *traceRow) time(column string) (time.Duration, error) {
	t, err := parseTime(r.text(column))
	if err != nil {
		return 0, fmt.Errorf("%s is %w", column, err)
	}
	return t, nil
}

// parseTime reads seconds, or a date with a time of day.
func parseTime(text string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if at, dateErr := time.Parse(time.DateTime, text); dateErr == nil {
		seconds, err = float64(at.Unix()), nil
	}
	if err != nil || !(seconds >= 0) || seconds > maxTraceSeconds {
		return 0, fmt.Errorf("%q, want seconds from 0 to %g, or a time such as %s", text,
			maxTraceSeconds, time.DateTime)
	}
	return duration(seconds), nil
}

// duration converts seconds, rounded to a microsecond.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}
