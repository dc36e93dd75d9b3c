package study

import (
	"math"
	"slices"
	"strings"

	"courier/regress/table"
)

// ColumnRole is what a column of a table of runs contains: the names of such columns. The first is that
// of courier explore, others are common in tables of other programs.
type ColumnRole string

// The roles of columns.
const (
	TotalSeconds ColumnRole = "total_seconds time_s seconds duration_seconds duration time"
	EpochSeconds ColumnRole = "epoch_seconds time_per_epoch"
	Accuracy     ColumnRole = "accuracy final_accuracy val_accuracy"
	Model        ColumnRole = "model network"
	Dataset      ColumnRole = "dataset"
	BatchSize    ColumnRole = "batch_size batch"
	CPUs         ColumnRole = "cpus cpu"
	GPUs         ColumnRole = "gpus gpu"
	Jobs         ColumnRole = "jobs njobs"
	Epochs       ColumnRole = "epochs"
	Replication  ColumnRole = "replication"
	Block        ColumnRole = "block"
	Job          ColumnRole = "job"
	Status       ColumnRole = "status"
	RunID        ColumnRole = "run_id"
)

// Column returns the name of the column of a role; empty if the table has none with a value.
func Column(t *table.Table, role ColumnRole) string {
	for name := range strings.FieldsSeq(string(role)) {
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
