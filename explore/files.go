package explore

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the files of a study.
const (
	designFile = "design.json"
	runsFile   = "runs.csv"
	epochsFile = "epochs.csv"
)

// RunID identifies a run in a study.
func (r *MeasuredRun) RunID() string { return fmt.Sprintf("%s-%d", r.Block.ID(), r.Job) }

// column is a column of a table, with a pointer to the field of a row.
type column struct {
	name  string
	field any
}

// columns returns the columns of runs.csv, which courier import and courier anova read. The derived
// ones are ignored by the reader.
func (r *MeasuredRun) columns(o *Options) []column {
	id, block, epochSeconds := r.RunID(), r.Block.ID(), r.EpochSeconds()
	return []column{
		{"run_id", &id}, {"replication", &r.Replication}, {"block", &block}, {"model", &o.Model},
		{"dataset", &o.Dataset}, {"batch_size", &r.BatchSize}, {"cpus", &r.CPUs},
		{"workers", &r.Workers}, {"gpus", &r.GPUs},
		{"jobs", &r.Jobs}, {"job", &r.Job}, {"epochs", &r.Epochs}, {"epochs_done", &r.EpochsDone},
		{"total_seconds", &r.TotalSeconds}, {"startup_seconds", &r.StartupSeconds},
		{"epoch_seconds", &epochSeconds}, {"accuracy", &r.Accuracy}, {"loss", &r.Loss},
		{"cpu_utilization", &r.CPUUtilization}, {"io_wait_ratio", &r.IOWaitRatio},
		{"node_processes", &r.NodeProcesses}, {"node", &r.Node}, {"started_at", &r.StartedAt},
		{"ended_at", &r.EndedAt}, {"status", &r.Status},
	}
}

// columns returns the columns of epochs.csv.
func (p *EpochPoint) columns(runID *string) []column {
	return []column{
		{"run_id", runID}, {"epoch", &p.Epoch}, {"seconds", &p.Seconds}, {"loss", &p.Loss},
		{"accuracy", &p.Accuracy},
	}
}

// text returns the cell of a field.
func (c *column) text() string {
	switch field := c.field.(type) {
	case *string:
		return *field
	case *time.Time:
		return field.UTC().Format(time.RFC3339Nano)
	}
	number, _ := json.Marshal(c.field) // a measured number is finite
	return strings.TrimPrefix(string(number), "null")
}

// parse sets a field to a cell.
func (c *column) parse(cell string) error {
	switch field := c.field.(type) {
	case *string:
		*field = cell
		return nil
	case *time.Time:
		return field.UnmarshalText([]byte(cell))
	}
	return json.Unmarshal([]byte(cmp.Or(cell, "null")), c.field)
}

// append writes records to the files of the study. The epochs come first, so that a run in runs.csv
// has all of them.
func (s *Study) append(records []MeasuredRun) error {
	var epochs, runs [][]column
	for i := range records {
		r := &records[i]
		id := r.RunID()
		for k := range r.Curve {
			epochs = append(epochs, r.Curve[k].columns(&id))
		}
		runs = append(runs, r.columns(&s.o))
	}
	if err := appendRows(filepath.Join(s.dir, epochsFile), epochs); err != nil {
		return err
	}
	return appendRows(filepath.Join(s.dir, runsFile), runs)
}

// appendRows appends rows to a table in one write, and creates it with its head.
func appendRows(path string, rows [][]column) error {
	if len(rows) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	if info.Size() == 0 {
		_ = w.Write(cells(rows[0], columnName)) // a strings.Builder returns no error
	}
	for _, row := range rows {
		_ = w.Write(cells(row, (*column).text))
	}
	w.Flush()
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

func columnName(c *column) string { return c.name }

// cells returns a text of each column.
func cells(row []column, text func(*column) string) (all []string) {
	for i := range row {
		all = append(all, text(&row[i]))
	}
	return all
}

// readRows reads the complete rows of a table; columns returns those of a row. A missing file has
// none. An unfinished last line, as of a crash, is cut off.
func readRows[T any](path string, columns func(*T) []column) ([]T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	if end < len(data) {
		if err := os.Truncate(path, int64(end)); err != nil {
			return nil, err
		}
	}
	lines, err := csv.NewReader(bytes.NewReader(data[:end])).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 {
		return nil, nil
	}
	rows := make([]T, len(lines)-1)
	if head := cells(columns(new(T)), columnName); !slices.Equal(lines[0], head) {
		return nil, fmt.Errorf("%s is not of a study: want a table with the columns %s", path,
			strings.Join(head, ","))
	}
	for i := range rows {
		line := lines[i+1]
		for k, c := range columns(&rows[i]) {
			if err := c.parse(line[k]); err != nil {
				return nil, fmt.Errorf("%s: run %s: column %s: %w", path, line[0], c.name, err)
			}
		}
	}
	return rows, nil
}

// read reads the records of the study.
func (s *Study) read() error {
	runs, err := readRows(filepath.Join(s.dir, runsFile), func(r *MeasuredRun) []column {
		return r.columns(&Options{})
	})
	if err != nil {
		return err
	}
	type epochOfRun struct {
		runID string
		EpochPoint
	}
	epochs, err := readRows(filepath.Join(s.dir, epochsFile), func(e *epochOfRun) []column {
		return e.columns(&e.runID)
	})
	if err != nil {
		return err
	}
	curves := map[string][]EpochPoint{}
	for _, e := range epochs {
		curves[e.runID] = append(curves[e.runID], e.EpochPoint)
	}
	for _, r := range runs {
		r.Curve = curves[r.RunID()]
		if n := len(r.Curve) - r.EpochsDone; n > 0 && len(r.Curve) > 0 {
			r.Curve = r.Curve[n:] // of a run that was repeated after an interruption
		}
		s.add(r)
	}
	return nil
}

// checkDesign writes the design of a new study, and compares that of an existing one.
func (s *Study) checkDesign() error {
	path := filepath.Join(s.dir, designFile)
	text, err := json.MarshalIndent(&s.o, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	before, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(path, text, 0o644)
	case err != nil:
		return err
	case !bytes.Equal(before, text):
		return fmt.Errorf("%s has a study with another design: repeat its flags to continue it, "+
			"or choose another --dir", s.dir)
	}
	return nil
}
