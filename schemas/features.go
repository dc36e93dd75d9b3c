package schemas

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Column is a feature of a regressor.
type Column uint8

// The columns. Batch size, CPUs, concurrent jobs, processes and model are the features of the paper
// (Courier, ICPE 2021, section 4.3). Its nodes were identical, so it has no feature for the cores,
// the processes per core, the CPU model or the speed of a node.
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

// columns holds the name of each column in a regressor's file, and its unit.
var columns = [...]struct{ name, unit string }{
	ColumnBatchSize:        {"batch_size", "samples"},
	ColumnCPUs:             {"cpus", "processes"},
	ColumnConcurrentJobs:   {"concurrent_jobs", "jobs"},
	ColumnProcesses:        {"processes", "processes"},
	ColumnModel:            {"model", ""},
	ColumnEpochsDone:       {"epochs_done", "epochs"},
	ColumnCores:            {"cores", "processors"},
	ColumnProcessesPerCore: {"processes_per_core", "processes per processor"},
	ColumnCPUModel:         {"cpu_model", ""},
	ColumnNodeSpeed:        {"node_speed_operations_per_second", "operations per second"},
	ColumnForeignCPU:       {"foreign_cpu_ratio", "ratio"},
	ColumnForeignIOWait:    {"foreign_io_wait_ratio", "ratio"},
}

// String returns the column's name in a regressor's file.
func (c Column) String() string { return columns[c].name }

// Unit returns the unit of the column's values; "" for a category.
func (c Column) Unit() string { return columns[c].unit }

// Continuous reports whether the values of the column are observed rather than chosen.
func (c Column) Continuous() bool {
	switch c {
	case ColumnConcurrentJobs, ColumnProcesses, ColumnEpochsDone, ColumnProcessesPerCore,
		ColumnNodeSpeed, ColumnForeignCPU, ColumnForeignIOWait:
		return true
	}
	return false
}

// DescribesNode reports whether the column describes the speed of a node, which scales the time of
// every job on it.
func (c Column) DescribesNode() bool {
	return c == ColumnCores || c == ColumnCPUModel || c == ColumnNodeSpeed
}

// Near reports whether two values of a column may belong to identical nodes. Speeds are measured
// and rounded, so identical nodes may differ by one step.
func (c Column) Near(x, y float64) bool {
	return x == y || c == ColumnNodeSpeed && math.Abs(math.Log(x/y)) < 1.5*speedStep
}

// ColumnsOf returns the columns that every regressor of the target has. NewEncoder adds the columns
// that distinguish nodes.
func ColumnsOf(target string) []Column {
	all := []Column{
		ColumnBatchSize, ColumnCPUs, ColumnConcurrentJobs, ColumnProcesses, ColumnModel,
	}
	if target == TargetAccuracy {
		all = append(all, ColumnEpochsDone)
	}
	return all
}

// ParseColumns returns the columns with the given names. An unknown name is an error: a regressor
// with that column was fitted by another version and must not answer.
func ParseColumns(names []string) ([]Column, error) {
	parsed := make([]Column, len(names))
	for i, name := range names {
		k := slices.IndexFunc(columns[:], func(c struct{ name, unit string }) bool {
			return c.name == name
		})
		if k < 0 {
			return nil, fmt.Errorf("feature %q is not known to this version", clip(name))
		}
		parsed[i] = Column(k)
	}
	return parsed, nil
}

// Features describes a job and its load as input of a regressor. Training builds it from what
// happened, advice from what is requested.
type Features struct {
	BatchSize  uint32  // samples per iteration
	CPUs       uint32  // processes of the job
	Load       Load    // this job included
	ModelCode  float64 // index of the model among the regressor's levels
	EpochsDone uint32  // epochs after which the target holds; accuracy only

	Node NodeCode // encoded node to which the load belongs
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

// quarters rounds a load to quarter steps. Loads of past epochs are means over time. After rounding
// they are equal within a configuration, so that they form a group, and a regressor has few
// thresholds, so that it can be compiled to a table.
func quarters(v float64) float64 { return math.Round(4*v) / 4 }

// MinStableTimeRatio is the minimum share of an epoch at one concurrency for the epoch to be an
// example.
const MinStableTimeRatio = 0.5

// ExampleWeight returns the weight of an epoch as an example: the share of its longest period at
// one concurrency, or 0 below MinStableTimeRatio.
func (l Load) ExampleWeight() float64 {
	if l.StableTimeRatio < MinStableTimeRatio {
		return 0
	}
	return l.StableTimeRatio
}

// Span is the period in which a started job ran.
type Span struct {
	JobID string
	Nodes []string
	CPUs  uint32
	From  time.Time
	Until time.Time // zero: the job still runs

	Hardware []Hardware // of the nodes, in their order; missing entries are unknown
	Foreign  []Foreign  // foreign load of the nodes, in their order, for LoadNow
	Usage    Usage      // of the epochs so far
}

// hardware returns the hardware of the node with index i.
func (s *Span) hardware(i int) (h Hardware) {
	if i < len(s.Hardware) {
		h = s.Hardware[i]
	}
	return h
}

// runsOn reports whether the span's job runs on the node.
func (s *Span) runsOn(node string) bool { return slices.Contains(s.Nodes, node) }

// overlap returns how much of the span lies between from and until.
func (s *Span) overlap(from, until time.Time) time.Duration {
	if s.From.After(from) {
		from = s.From
	}
	if !s.Until.IsZero() && s.Until.Before(until) {
		until = s.Until
	}
	return max(0, until.Sub(from))
}

// LoadBetween returns the time-weighted load of the job self between from and until, computed from
// the spans of the other jobs, and the node with that load. For a job on several nodes it is the
// most loaded node. The foreign load is unknown; ForeignDuring returns it for an epoch.
func LoadBetween(self Span, spans []Span, from, until time.Time) (Load, Hardware) {
	return self.highestLoad(func(node string) Load {
		return loadOn(node, self, spans, from, until)
	})
}

// highestLoad returns the load of the job's most loaded node, and that node.
func (s *Span) highestLoad(loadOn func(node string) Load) (highest Load, on Hardware) {
	for i, node := range s.Nodes {
		l, h := loadOn(node), s.hardware(i)
		if i == 0 || MoreLoaded(l.Processes, h, highest.Processes, on) {
			highest, on = l, h
		}
	}
	if on.Cores > 0 {
		highest.ProcessesPerCore = highest.Processes / float64(on.Cores)
	}
	return highest, on
}

// loadOn returns the time-weighted load of the job self on one of its nodes.
func loadOn(node string, self Span, spans []Span, from, until time.Time) Load {
	l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs), StableTimeRatio: 1}
	whole := until.Sub(from)
	if whole <= 0 {
		return l
	}

	changes := []time.Time{from, until}
	for i := range spans {
		s := &spans[i]
		if s.JobID == self.JobID || !s.runsOn(node) {
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

// longestGap returns the longest time between consecutive instants, in seconds.
func longestGap(times []time.Time) float64 {
	slices.SortFunc(times, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i].Sub(times[i-1]))
	}
	return longest.Seconds()
}

// LoadNow returns the load that the job self has, or would have, together with the jobs whose spans
// have no end. It also returns the hardware of the node with that load. The foreign load is taken
// from self.
func LoadNow(self Span, spans []Span) (Load, Hardware) {
	return self.highestLoad(func(node string) Load {
		l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs), StableTimeRatio: 1}
		if i := slices.Index(self.Nodes, node); i < len(self.Foreign) {
			self.Foreign[i].Set(&l)
		}
		for i := range spans {
			s := &spans[i]
			if s.JobID != self.JobID && s.Until.IsZero() && s.runsOn(node) {
				l.ConcurrentJobs++
				l.Processes += float64(s.CPUs)
			}
		}
		return l
	})
}
