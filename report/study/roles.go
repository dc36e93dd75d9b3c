package study

import (
	"math"
	"slices"
	"strings"

	"courier/regress/table"
)

// ColumnRole is what a column of a table of runs contains.
type ColumnRole int

// The roles of columns.
const (
	TotalSeconds ColumnRole = iota
	EpochSeconds
	Accuracy
	Model
	Dataset
	BatchSize
	CPUs
	GPUs
	Jobs
	Epochs
	Replication
	Block
	Job
	Status
	RunID
	Utilization
	IOWait
	Processes
)

// columnNames are the names of the columns of each role: that of courier explore, and others that
// are common in tables of other programs.
var columnNames = map[ColumnRole][]string{
	TotalSeconds: {"total_seconds", "time_s", "seconds", "duration_seconds", "duration", "time"},
	EpochSeconds: {"epoch_seconds", "time_per_epoch"},
	Accuracy:     {"accuracy", "final_accuracy", "val_accuracy"},
	Model:        {"model", "network"},
	Dataset:      {"dataset"},
	BatchSize:    {"batch_size", "batch"},
	CPUs:         {"cpus", "cpu"},
	GPUs:         {"gpus", "gpu"},
	Jobs:         {"jobs", "njobs"},
	Epochs:       {"epochs"},
	Replication:  {"replication"},
	Block:        {"block"},
	Job:          {"job"},
	Status:       {"status"},
	RunID:        {"run_id"},
	Utilization:  {"cpu_utilization", "cpu_mean_pct"},
	IOWait:       {"io_wait_ratio", "iowait_mean_pct"},
	Processes:    {"node_processes", "processes"},
}

// Column returns the name of the column of a role; empty if the table has none with a value.
func Column(t *table.Table, role ColumnRole) string {
	for _, name := range columnNames[role] {
		k := slices.Index(t.Header, name)
		if k >= 0 && slices.ContainsFunc(t.Rows, func(row []string) bool {
			return strings.TrimSpace(row[k]) != ""
		}) {
			return name
		}
	}
	return ""
}

// Numbers returns the numbers of a column, NaN where a cell has none; nil without the column.
func Numbers(t *table.Table, name string) []float64 {
	k := slices.Index(t.Header, name)
	if k < 0 {
		return nil
	}
	values := make([]float64, len(t.Rows))
	for i, row := range t.Rows {
		if values[i] = table.Number(row[k]); math.IsInf(values[i], 0) {
			values[i] = math.NaN()
		}
	}
	return values
}

// levels returns the distinct values of a column without empty cells.
func levels(t *table.Table, name string) []string {
	k := slices.Index(t.Header, name)
	if k < 0 {
		return nil
	}
	var all []string
	seen := map[string]bool{}
	for _, row := range t.Rows {
		if cell := strings.TrimSpace(row[k]); cell != "" && !seen[cell] {
			seen[cell] = true
			all = append(all, cell)
		}
	}
	return all
}
