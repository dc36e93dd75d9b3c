package schemas

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Column is an input of a regressor.
type Column uint8

// The columns. Batch size, CPUs, concurrent jobs, processes and model are those
// of the paper (Courier, ICPE 2021, section 4.3); its nodes were alike, so that it
// needs none of cores, processes per core, CPU model and speed of a node.
const (
	ColumnBatchSize Column = iota
	ColumnCPUs
	ColumnConcurrentJobs
	ColumnProcesses
	ColumnModel
	ColumnEpochsDone
	ColumnCores
	ColumnProcessesPerCore
	ColumnCPUModel
	ColumnNodeSpeed
	ColumnForeignCPU
	ColumnForeignIOWait
)

var columnNames = [...]string{"batch_size", "cpus", "concurrent_jobs", "processes", "model", "epochs_done",
	"cores", "processes_per_core", "cpu_model", "node_speed_operations_per_second",
	"foreign_cpu_ratio", "foreign_io_wait_ratio"}
var columnUnits = [...]string{"samples", "processes", "jobs", "processes", "", "epochs",
	"processors", "processes per processor", "", "operations per second", "ratio", "ratio"}

// String returns the column's name in a regressor's file.
func (c Column) String() string { return columnNames[c] }

// Unit returns the unit of the column's values; "" for a category.
func (c Column) Unit() string { return columnUnits[c] }

// Continuous reports whether the values of the column are met, not chosen.
func (c Column) Continuous() bool {
	switch c {
	case ColumnConcurrentJobs, ColumnProcesses, ColumnEpochsDone, ColumnProcessesPerCore,
		ColumnNodeSpeed, ColumnForeignCPU, ColumnForeignIOWait:
		return true
	}
	return false
}

// Alone reports whether the column tells how quick a node is, which multiplies the
// time of whatever runs there.
func (c Column) Alone() bool {
	return c == ColumnCores || c == ColumnCPUModel || c == ColumnNodeSpeed
}

// ColumnsOf returns the columns that every regressor of the target is fitted on;
// NewEncoder adds those that tell nodes apart.
func ColumnsOf(target string) []Column {
	columns := []Column{ColumnBatchSize, ColumnCPUs, ColumnConcurrentJobs, ColumnProcesses, ColumnModel}
	if target == TargetAccuracy {
		columns = append(columns, ColumnEpochsDone)
	}
	return columns
}

// ParseColumns returns the columns of the given names. An unknown name is an
// error: that regressor was fitted by another version and must not answer.
func ParseColumns(names []string) ([]Column, error) {
	columns := make([]Column, len(names))
	for i, name := range names {
		k := slices.Index(columnNames[:], name)
		if k < 0 {
			return nil, fmt.Errorf("feature %q is not known to this version", clip(name))
		}
		columns[i] = Column(k)
	}
	return columns, nil
}

// Features is a job and what surrounds it, as numbers are made of it: in
// training from what happened, in advice from what is asked.
type Features struct {
	BatchSize  uint32  // samples in one iteration
	CPUs       uint32  // processes of the job
	Load       Load    // this job included
	ModelCode  float64 // index of the model among the regressor's levels
	EpochsDone uint32  // epochs after which the target holds; accuracy only

	Node NodeCode // of the node whose load it is, as the regressor reads it
}

// Fill writes the values of the columns into dst, which has their length.
func (f *Features) Fill(dst []float64, columns []Column) {
	for i, c := range columns {
		switch c {
		case ColumnBatchSize:
			dst[i] = float64(f.BatchSize)
		case ColumnCPUs:
			dst[i] = float64(f.CPUs)
		case ColumnConcurrentJobs:
			dst[i] = quarters(f.Load.ConcurrentJobs)
		case ColumnProcesses:
			dst[i] = quarters(f.Load.Processes)
		case ColumnModel:
			dst[i] = f.ModelCode
		case ColumnEpochsDone:
			dst[i] = float64(f.EpochsDone)
		case ColumnCores:
			dst[i] = f.Node.Cores
		case ColumnProcessesPerCore:
			dst[i] = quarters(f.Load.Processes) / f.Node.Cores
		case ColumnCPUModel:
			dst[i] = f.Node.CPUModel
		case ColumnNodeSpeed:
			dst[i] = f.Node.Speed
		case ColumnForeignCPU:
			dst[i] = f.Load.ForeignCPURatio.Value
		case ColumnForeignIOWait:
			dst[i] = f.Load.ForeignIOWaitRatio.Value
		}
	}
}

// quarters rounds a load to quarter steps. Loads of past epochs are means over
// time; rounded, those of one setting are equal, so that they form a group, and
// a regressor has few thresholds, so that it can be compiled to a table.
func quarters(v float64) float64 { return math.Round(4*v) / 4 }

// MinStableTimeRatio is the share of an epoch that must have passed at one
// concurrency for the epoch to teach anything.
const MinStableTimeRatio = 0.5

// ExampleWeight returns the weight of an epoch as an example: that of its
// longest stretch at one concurrency, and none under MinStableTimeRatio.
func (l Load) ExampleWeight() float64 {
	if l.StableTimeRatio < MinStableTimeRatio {
		return 0
	}
	return l.StableTimeRatio
}

// Span is a time in which a job ran. Only started jobs have one.
type Span struct {
	JobID string
	Nodes []string
	CPUs  uint32
	From  time.Time
	Until time.Time // zero: it still runs

	Hardware []Hardware // of its nodes, in their order; fewer: of the others nothing is known
	Foreign  []Foreign  // load of its nodes that is not due to jobs, in their order, for LoadNow
	Usage    Usage      // of its epochs so far
}

func (s *Span) hardware(i int) (h Hardware) {
	if i < len(s.Hardware) {
		h = s.Hardware[i]
	}
	return h
}

// on reports whether the span's job runs on the node.
func (s *Span) on(node string) bool { return slices.Contains(s.Nodes, node) }

// overlap returns how long the span lies within from and until.
func (s *Span) overlap(from, until time.Time) time.Duration {
	if s.From.After(from) {
		from = s.From
	}
	if !s.Until.IsZero() && s.Until.Before(until) {
		until = s.Until
	}
	return max(0, until.Sub(from))
}

// LoadBetween returns the load of the job self, time-weighted between from and
// until, as the other jobs' spans make it, and the node where it is that. A job on
// several nodes takes the most loaded one. The foreign load is unknown: ForeignDuring
// returns that of an epoch.
func LoadBetween(self Span, spans []Span, from, until time.Time) (Load, Hardware) {
	return self.most(func(node string) Load { return loadOn(node, self, spans, from, until) })
}

// most returns the load of the most loaded node of a job, and that node.
func (s *Span) most(loadOn func(node string) Load) (most Load, on Hardware) {
	for i, node := range s.Nodes {
		if l, h := loadOn(node), s.hardware(i); i == 0 || Fuller(l.Processes, h, most.Processes, on) {
			most, on = l, h
		}
	}
	if on.Cores > 0 {
		most.ProcessesPerCore = most.Processes / float64(on.Cores)
	}
	return most, on
}

func loadOn(node string, self Span, spans []Span, from, until time.Time) Load {
	l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs), StableTimeRatio: 1}
	whole := until.Sub(from)
	if whole <= 0 {
		return l
	}
	changes := []time.Time{from, until}
	for i := range spans {
		s := &spans[i]
		if s.JobID == self.JobID || !s.on(node) {
			continue
		}
		share := float64(s.overlap(from, until)) / float64(whole)
		if share == 0 {
			continue
		}
		l.ConcurrentJobs += share
		l.Processes += share * float64(s.CPUs)
		for _, t := range []time.Time{s.From, s.Until} {
			if t.After(from) && t.Before(until) {
				changes = append(changes, t)
			}
		}
	}
	l.StableTimeRatio = longestGap(changes) / whole.Seconds()
	return l
}

// longestGap returns the longest time between neighbours, in seconds.
func longestGap(times []time.Time) float64 {
	slices.SortFunc(times, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i].Sub(times[i-1]))
	}
	return longest.Seconds()
}

// LoadNow returns the load that a job of cpus on nodes has, or would have,
// beside the jobs whose spans have no end, and the node where it is that. The foreign load is
// that of its own span.
func LoadNow(self Span, spans []Span) (Load, Hardware) {
	return self.most(func(node string) Load {
		l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs), StableTimeRatio: 1}
		if i := slices.Index(self.Nodes, node); i < len(self.Foreign) {
			self.Foreign[i].Set(&l)
		}
		for i := range spans {
			if s := &spans[i]; s.JobID != self.JobID && s.Until.IsZero() && s.on(node) {
				l.ConcurrentJobs++
				l.Processes += float64(s.CPUs)
			}
		}
		return l
	})
}
