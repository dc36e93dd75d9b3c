package evidence

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Configuration is the set of features that determine the epoch time. Runs with equal
// configurations are pooled.
type Configuration struct {
	Model     string `json:"model"`
	Dataset   string `json:"dataset,omitempty"`
	NodeType  string `json:"node_type,omitempty"`
	BatchSize int    `json:"batch_size"` // samples, 1 or more
	CPUs      int    `json:"cpus"`       // processes of the job, 1 or more
	NodeLoad
}

// NodeLoad is the load of the node, including the job. Zero fields mean that it was not measured;
// unmeasured loads form a level of their own.
type NodeLoad struct {
	ConcurrentJobs   float64 `json:"concurrent_jobs,omitempty"`
	ProcessesPerCore float64 `json:"processes_per_core,omitempty"`
	// Shares of the node's processors that are busy with foreign work, or idle and waiting for its
	// storage access.
	ForeignCPURatio    float64 `json:"foreign_cpu_ratio,omitempty"`
	ForeignIOWaitRatio float64 `json:"foreign_io_wait_ratio,omitempty"`
}

// The widths of the bands in which loads count as equal.
const (
	jobsBand      = 1. / 4
	processesBand = 1. / 8
	foreignBand   = 1. / 10
)

// Banded returns the configuration with its load rounded to bands: quarters of
// concurrent jobs, eighths of processes per core, tenths of foreign CPU and foreign IO-wait.
func (c Configuration) Banded() Configuration {
	c.ConcurrentJobs = roundTo(jobsBand, c.ConcurrentJobs)
	c.ProcessesPerCore = roundTo(processesBand, c.ProcessesPerCore)
	c.ForeignCPURatio = roundTo(foreignBand, c.ForeignCPURatio)
	c.ForeignIOWaitRatio = roundTo(foreignBand, c.ForeignIOWaitRatio)
	return c
}

// roundTo rounds a load to bands. A mean load between two bands, such as one process on 16 cores, belongs to
// the same one whatever its rounding error.
func roundTo(band, load float64) float64 {
	const roundingError = 1e-6
	return math.Round(load/band+roundingError) / math.Round(1/band)
}

// valid reports whether predictions can be computed for the configuration.
func (c *Configuration) valid() bool {
	if c.BatchSize < 1 || c.CPUs < 1 {
		return false
	}
	for _, x := range [...]float64{c.ConcurrentJobs, c.ProcessesPerCore, c.ForeignCPURatio, c.ForeignIOWaitRatio} {
		if !(x >= 0 && x <= 1e6) {
			return false
		}
	}
	return true
}

// subject returns the model and dataset. Runs of other subjects are no evidence.
func (c *Configuration) subject() subject { return subject{c.Model, c.Dataset} }

type subject struct{ model, dataset string }

func (s subject) compare(t subject) int {
	return cmp.Or(cmp.Compare(s.model, t.model), cmp.Compare(s.dataset, t.dataset))
}

func (c Configuration) compare(d Configuration) int {
	return cmp.Or(
		c.subject().compare(d.subject()),
		cmp.Compare(c.NodeType, d.NodeType), cmp.Compare(c.CPUs, d.CPUs),
		cmp.Compare(c.ConcurrentJobs, d.ConcurrentJobs), cmp.Compare(c.ProcessesPerCore, d.ProcessesPerCore),
		cmp.Compare(c.ForeignCPURatio, d.ForeignCPURatio),
		cmp.Compare(c.ForeignIOWaitRatio, d.ForeignIOWaitRatio), cmp.Compare(c.BatchSize, d.BatchSize))
}

// Run is one training run, or a part of it under one configuration. It contains measured epochs
// only.
type Run struct {
	// ID identifies the run. Runs without an ID are all different.
	ID string
	// Job that the run is a part of; empty: ID. A State compares the parts of a job once, after
	// the job has ended.
	Job string
	Configuration
	// Node is the name of the node. A node whose runs differ from other nodes of its
	// type is fitted as a type of its own: see Predictor.NodeType.
	Node      string
	StartedAt time.Time
	// EndedAt is the end of the job with all its parts; zero while it runs.
	EndedAt time.Time
	// StartupSeconds from the start to the begin of the first epoch; 0 if unknown.
	StartupSeconds float64
	// Epochs that were measured, in any order.
	Epochs []EpochRecord
}

// comparedName identifies the runs that are compared together.
func (r *Run) comparedName() string { return cmp.Or(r.Job, r.ID) }

// endOrStart returns the end of a run, or its start if the end is unknown.
func (r *Run) endOrStart() time.Time { return cmp.Or(r.EndedAt, r.StartedAt) }

// EpochRecord is one pass over the data, or several.
type EpochRecord struct {
	Number int // from 1; of several epochs that were measured together: of the last
	// Count of epochs that were measured together, such as rounds of boosting, or all of a run; 0
	// means 1.
	Count       int
	Seconds     float64 // of all of them; 0 if unknown
	Accuracy    float64 // after the epoch, 0 to 1
	HasAccuracy bool
}

// sortedRuns returns the valid runs with banded loads and sorted epochs. Their order does not depend on
// the order of the input.
func sortedRuns(runs []Run) []Run {
	kept := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.valid() })
	for i := range kept {
		r := &kept[i]
		r.Configuration = r.Banded()
		r.Epochs = slices.Clone(r.Epochs)
		slices.SortStableFunc(r.Epochs, func(a, b EpochRecord) int { return cmp.Compare(a.Number, b.Number) })
	}
	slices.SortStableFunc(kept, compareRuns)
	return kept
}

// bySubject returns the runs of each subject in order.
func bySubject(runs []Run) map[subject][]Run {
	of := map[subject][]Run{}
	for _, r := range runs {
		s := r.subject()
		of[s] = append(of[s], r)
	}
	for _, own := range of {
		slices.SortStableFunc(own, compareRuns)
	}
	return of
}

// compareRuns orders runs of any subjects. Runs that compare as equal are interchangeable.
func compareRuns(a, b Run) int {
	return cmp.Or(a.Configuration.compare(b.Configuration), a.StartedAt.Compare(b.StartedAt),
		cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID), cmp.Compare(len(a.Epochs), len(b.Epochs)),
		cmp.Compare(a.StartupSeconds, b.StartupSeconds))
}
