package elastic

import (
	"fmt"
	"slices"
	"strings"
)

// TraceColumns are the names of the columns of a trace.
type TraceColumns struct {
	ID        string
	Submitted string

	// Only in traces with deadlines.
	Deadline   string
	Iterations string
	Model      string
	BatchSize  string

	// Only in recorded traces. Without a column Duration, it is the time between the others.
	GPUs     string
	Duration string
	Started  string
	Ended    string
}

// DefaultColumns are the names of the published traces of ElasticFlow. The older names of the
// authors' artifact are accepted, too.
func DefaultColumns() TraceColumns {
	return TraceColumns{
		ID:         "job_id",
		Submitted:  "submission_time",
		Deadline:   "deadline",
		Iterations: "num_iteration",
		Model:      "model_name",
		BatchSize:  "batch_size",
		GPUs:       "num_gpu",
		Duration:   "duration",
		Started:    "start_time",
		Ended:      "end_time",
	}
}

// Set changes names. Each mapping is "name=column", where name is one of the default names.
func (c *TraceColumns) Set(mappings ...string) error {
	fields := map[string]*string{
		"job_id":          &c.ID,
		"submission_time": &c.Submitted,
		"deadline":        &c.Deadline,
		"num_iteration":   &c.Iterations,
		"model_name":      &c.Model,
		"batch_size":      &c.BatchSize,
		"num_gpu":         &c.GPUs,
		"duration":        &c.Duration,
		"start_time":      &c.Started,
		"end_time":        &c.Ended,
	}
	for _, mapping := range mappings {
		name, column, ok := strings.Cut(mapping, "=")
		if !ok || column == "" {
			return fmt.Errorf("invalid column %q: want NAME=COLUMN", mapping)
		}
		field := fields[name]
		if field == nil {
			return fmt.Errorf("column %q is not one of job_id, submission_time, deadline, "+
				"num_iteration, model_name, batch_size, num_gpu, duration, start_time, end_time", name)
		}
		*field = column
	}
	return nil
}

// artifactColumns are the older names of ElasticFlow's artifact.
var artifactColumns = map[string]string{
	"submission_time": "submit_time",
	"deadline":        "ddl",
	"num_iteration":   "iteration",
}

// withDeadlines returns the columns that ReadTrace needs.
func (c *TraceColumns) withDeadlines(_ []string) []*string {
	return []*string{&c.ID, &c.Submitted, &c.Deadline, &c.Iterations, &c.Model, &c.BatchSize}
}

// recorded returns the columns that a recorded trace with a header needs.
func (c *TraceColumns) recorded(header []string) []*string {
	needed := []*string{&c.ID, &c.Submitted, &c.GPUs}
	if slices.Contains(header, c.Started) && slices.Contains(header, c.Ended) &&
		!slices.Contains(header, c.Duration) {
		return append(needed, &c.Started, &c.Ended)
	}
	return append(needed, &c.Duration)
}

func newTraceRow(header []string, columns *TraceColumns, needed []*string) (*traceRow, error) {
	row := &traceRow{columns: columns, index: map[string]int{}}
	for i, name := range header {
		if slices.Contains(header[:i], name) && name != "" {
			return nil, fmt.Errorf("column %q occurs twice in the header", name)
		}
		row.index[name] = i
	}
	for _, name := range needed {
		older := artifactColumns[*name]
		if !slices.Contains(header, *name) && slices.Contains(header, older) {
			*name = older
		}
		if !slices.Contains(header, *name) {
			return nil, fmt.Errorf("missing column %q: give its name with --column, or another --format; "+
				"the columns are %s", *name, strings.Join(header, ", "))
		}
	}
	return row, nil
}
