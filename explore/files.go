package explore

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the files of a study.
const (
	designFile = "design.json"
	runsFile   = "runs.csv"
	epochsFile = "epochs.csv"
)

// runColumns are the columns of runs.csv, which courier import and courier anova read.
var runColumns = []string{
	"run_id", "replication", "block", "model", "dataset", "batch_size", "cpus", "gpus", "jobs", "job",
	"epochs", "epochs_done", "total_seconds", "startup_seconds", "epoch_seconds", "accuracy", "loss",
	"cpu_utilization", "io_wait_ratio", "node_processes", "node", "started_at", "ended_at", "status",
}

var epochColumns = []string{"run_id", "epoch", "seconds", "loss", "accuracy"}

// RunID identifies a run in a study.
func (r *MeasuredRun) RunID() string { return fmt.Sprintf("%s-%d", r.Block.ID(), r.Job) }

// row returns the row of a run in runs.csv.
func (o *Options) row(r *MeasuredRun) []string {
	return []string{
		r.RunID(), strconv.Itoa(r.Replication), r.Block.ID(), o.Model, o.Dataset,
		strconv.Itoa(r.BatchSize), strconv.Itoa(r.CPUs), strconv.Itoa(r.GPUs), strconv.Itoa(r.Jobs),
		strconv.Itoa(r.Job), strconv.Itoa(r.Epochs), strconv.Itoa(r.EpochsDone),
		number(r.TotalSeconds), number(r.StartupSeconds), number(r.EpochSeconds()),
		optional(r.Accuracy), optional(r.Loss), optional(r.CPUUtilization), optional(r.IOWaitRatio),
		strconv.Itoa(r.NodeProcesses), r.Node,
		r.StartedAt.UTC().Format(time.RFC3339Nano), r.EndedAt.UTC().Format(time.RFC3339Nano), r.Status,
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}

// append writes records to the files of the study. The epochs come first, so that a run in runs.csv
// has all of them.
func (s *Study) append(records []MeasuredRun) error {
	var epochs, runs [][]string
	for i := range records {
		r := &records[i]
		for _, p := range r.Curve {
			epochs = append(epochs, []string{
				r.RunID(), strconv.Itoa(p.Epoch), number(p.Seconds), optional(p.Loss),
				optional(p.Accuracy),
			})
		}
		runs = append(runs, s.o.row(r))
	}
	if err := appendRows(filepath.Join(s.dir, epochsFile), epochColumns, epochs); err != nil {
		return err
	}
	return appendRows(filepath.Join(s.dir, runsFile), runColumns, runs)
}

// appendRows appends rows to a table in one write, and creates it with its head.
func appendRows(path string, columns []string, rows [][]string) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		_ = w.Write(columns) // a strings.Builder returns no error
	}
	_ = w.WriteAll(rows)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

// readTable reads the complete rows of a table by column. A missing file has none. An unfinished
// last line, as of a crash, is cut off.
func readTable(path string, columns []string) ([]map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end := strings.LastIndexByte(string(data), '\n') + 1
	if end < len(data) {
		if err := os.Truncate(path, int64(end)); err != nil {
			return nil, err
		}
	}
	r := csv.NewReader(strings.NewReader(string(data[:end])))
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil || !slices.Equal(head, columns) {
		return nil, fmt.Errorf("%s: want a table with the columns %s: %w",
			path, strings.Join(columns, ","), errors.Join(err, errOtherTable))
	}
	var rows []map[string]string
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		row := map[string]string{}
		for i, name := range head {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
}

var errOtherTable = errors.New("it is not of a study")

// read reads the records of the study.
func (s *Study) read() error {
	rows, err := readTable(filepath.Join(s.dir, runsFile), runColumns)
	if err != nil {
		return err
	}
	epochs, err := readTable(filepath.Join(s.dir, epochsFile), epochColumns)
	if err != nil {
		return err
	}
	curves := map[string][]EpochPoint{}
	for _, row := range epochs {
		f := fieldReader{row: row}
		p := EpochPoint{f.integer("epoch"), f.float("seconds"), f.optional("loss"), f.optional("accuracy")}
		if f.err != nil {
			return fmt.Errorf("%s: %w", epochsFile, f.err)
		}
		curves[row["run_id"]] = append(curves[row["run_id"]], p)
	}
	for _, row := range rows {
		r, err := recordOf(row)
		if err != nil {
			return fmt.Errorf("%s: %w", runsFile, err)
		}
		r.Curve = curves[r.RunID()]
		if n := len(r.Curve) - r.EpochsDone; n > 0 && len(r.Curve) > 0 {
			r.Curve = r.Curve[n:] // of a run that was repeated after an interruption
		}
		s.add(r)
	}
	return nil
}

// recordOf returns the record of a row of runs.csv without its epochs.
func recordOf(row map[string]string) (MeasuredRun, error) {
	f := fieldReader{row: row}
	r := MeasuredRun{
		Block: Block{
			Cell: Cell{
				f.integer("batch_size"), f.integer("cpus"), f.integer("gpus"), f.integer("jobs"),
			},
			Replication: f.integer("replication"),
		},
		Job:            f.integer("job"),
		Epochs:         f.integer("epochs"),
		EpochsDone:     f.integer("epochs_done"),
		TotalSeconds:   f.float("total_seconds"),
		StartupSeconds: f.float("startup_seconds"),
		Accuracy:       f.optional("accuracy"),
		Loss:           f.optional("loss"),
		CPUUtilization: f.optional("cpu_utilization"),
		IOWaitRatio:    f.optional("io_wait_ratio"),
		NodeProcesses:  f.integer("node_processes"),
		Node:           row["node"],
		StartedAt:      f.time("started_at"),
		EndedAt:        f.time("ended_at"),
		Status:         row["status"],
	}
	return r, f.err
}

// fieldReader reads the fields of a row, and keeps the first error.
type fieldReader struct {
	row map[string]string
	err error
}

func (f *fieldReader) fail(name string, err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("run %s: column %s: %w", f.row["run_id"], name, err)
	}
}

func (f *fieldReader) integer(name string) int {
	v, err := strconv.Atoi(f.row[name])
	f.fail(name, err)
	return v
}

func (f *fieldReader) float(name string) float64 {
	v, err := strconv.ParseFloat(f.row[name], 64)
	f.fail(name, err)
	return v
}

func (f *fieldReader) optional(name string) *float64 {
	if f.row[name] == "" {
		return nil
	}
	v := f.float(name)
	return &v
}

func (f *fieldReader) time(name string) time.Time {
	v, err := time.Parse(time.RFC3339Nano, f.row[name])
	f.fail(name, err)
	return v
}

// checkDesign writes the design of a new study, and compares that of an existing one.
func (s *Study) checkDesign() error {
	path := filepath.Join(s.dir, designFile)
	text, err := json.MarshalIndent(s.o.stored(), "", "  ")
	if err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	var old, now storedDesign
	if err := json.Unmarshal(before, &old); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(text, &now); err != nil {
		return err
	}
	if !reflect.DeepEqual(old, now) {
		return fmt.Errorf("%s has a study with another design: repeat its flags to continue it, "+
			"or choose another --dir", s.dir)
	}
	return nil
}
