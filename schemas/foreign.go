package schemas

import (
	"slices"
	"time"
)

// Foreign is the load of a node that no known job causes. Both ratios are rounded to tenths, so
// that similar loads are one level of a feature.
type Foreign struct {
	// CPU is the share of the node's processors that foreign work uses, or would use if the jobs
	// were idle: on busy processors it gets less than it demands.
	CPU Ratio
	// IOWait is the share of the node's processors that are idle while foreign work waits for
	// storage. It is unknown if the processors are busy, because a busy processor hides it.
	IOWait Ratio
}

// Set writes the ratios into a load.
func (f Foreign) Set(l *Load) { l.ForeignCPURatio, l.ForeignIOWaitRatio = f.CPU, f.IOWait }

const (
	// saturatedRatio is the minimum busy share of a node whose processors are contended.
	saturatedRatio = 0.9
	// throttledShare is the minimum part of a thread's fair share of contended processors that
	// foreign work must get to count as at least one throttled thread.
	throttledShare = 0.75
	// idleBytesPerSecond is the maximum storage traffic of a job that does not wait for storage.
	idleBytesPerSecond = 16 << 10
)

// Known is the part of a node's load that known jobs cause.
type Known struct {
	Processes float64 // processes of the jobs
	CPU       float64 // processors that they keep busy
	IsIOIdle  bool    // they read and write next to nothing, so that they do not wait for storage
}

// ForeignOf returns the part of a node's load that the known jobs do not explain. cpu and ioWait
// are the node's ratios.
//
// On contended processors every thread gets the same share. Foreign work that got at least
// throttledShare of such a share demands as many processors as it got shares.
func ForeignOf(cores uint32, cpu, ioWait Ratio, known Known) (f Foreign) {
	if cores == 0 || !cpu.Known {
		return f
	}

	n := float64(cores)
	foreign := max(0, cpu.Value*n-known.CPU)
	if share := known.CPU / known.Processes; cpu.Value >= saturatedRatio && known.Processes > 0 &&
		share > 0 && share < 1 && foreign >= throttledShare*share {
		foreign /= share
	}
	f.CPU = RatioOf(foreign / n).Tenths()

	if ioWait.Known && cpu.Value < saturatedRatio && known.IsIOIdle {
		f.IOWait = ioWait.Tenths()
	}
	return f
}

// Usage is the sum of the resources that a job used in some of its epochs.
type Usage struct {
	CPUSeconds    float64 // CPU time
	Seconds       float64 // duration of the epochs with a known CPU time
	IOIdleSeconds float64 // duration of the epochs with next to no reads and writes
}

// UsageOf returns the usage of a job in an epoch. since is the end of the previous epoch or the
// start of the run: the epoch's figures cover the time since then.
func UsageOf(e *Epoch, since time.Time) (u Usage) {
	seconds := observedSeconds(e, since)
	if seconds == 0 {
		return u
	}
	if e.JobCPUSeconds != nil {
		u.CPUSeconds, u.Seconds = *e.JobCPUSeconds, seconds
	}
	if e.JobReadBytes != nil && e.JobWrittenBytes != nil &&
		*e.JobReadBytes+*e.JobWrittenBytes <= idleBytesPerSecond*seconds {
		u.IOIdleSeconds = seconds
	}
	return u
}

// observedSeconds returns the time that an epoch's figures of node and job cover, or 0 if it is
// unknown. Epochs that are reported together share their figures. A duration from the job's output
// therefore counts only if it matches the time since the previous report.
func observedSeconds(e *Epoch, since time.Time) float64 {
	if e.DurationSource == DurationArrival {
		return e.DurationSeconds
	}
	const maxRatio = 1.5 // a longer gap contains other epochs or the start-up
	gap := e.At.Sub(since).Seconds()
	if since.IsZero() || gap < e.DurationSeconds/maxRatio || gap > e.DurationSeconds*maxRatio {
		return 0
	}
	return gap
}

// Add adds the usage of another epoch.
func (u *Usage) Add(o Usage) {
	u.CPUSeconds, u.Seconds = u.CPUSeconds+o.CPUSeconds, u.Seconds+o.Seconds
	u.IOIdleSeconds += o.IOIdleSeconds
}

// Known returns the load of a job with the given number of processes. If its CPU time is unknown,
// each process counts as one busy processor.
func (u Usage) Known(processes float64) Known {
	k := Known{Processes: processes, CPU: processes, IsIOIdle: u.IOIdleSeconds > 0}
	if u.Seconds > 0 {
		k.CPU = u.CPUSeconds / u.Seconds
	}
	return k
}

// Add adds the load of another job that was there for a share of the time.
func (k *Known) Add(o Known, share float64) {
	k.Processes += share * o.Processes
	k.CPU += share * o.CPU
	k.IsIOIdle = k.IsIOIdle && (o.IsIOIdle || share == 0)
}

// Observation holds the figures of an epoch from which Foreign computes the foreign load of its
// node, once the co-located jobs are known.
type Observation struct {
	Usage  Usage
	Cores  uint32 // processors of the node
	CPU    Ratio  // busy share of the node
	IOWait Ratio  // IO-wait share of the node
}

// Observe returns the observation of an epoch. since is as in UsageOf.
func Observe(e *Epoch, since time.Time) Observation {
	return Observation{
		Usage:  UsageOf(e, since),
		Cores:  e.NodeCores,
		CPU:    RatioAt(e.NodeCPURatio),
		IOWait: RatioAt(e.NodeIOWaitRatio),
	}
}

// Foreign returns the foreign load of the node of the job self in an epoch that ended at until,
// given the spans of other jobs. It is unknown for a job on several nodes, because the figures
// describe only one of them, and for a job with unknown CPU time.
func (o Observation) Foreign(self Span, others []Span, until time.Time) (f Foreign) {
	if len(self.Nodes) != 1 || o.Usage.Seconds == 0 {
		return f
	}
	known := o.Usage.Known(float64(self.CPUs))
	from := until.Add(-time.Duration(o.Usage.Seconds * float64(time.Second)))
	for i := range others {
		s := &others[i]
		if s.JobID == self.JobID || !s.runsOn(self.Nodes[0]) {
			continue
		}
		share := s.overlap(from, until).Seconds() / o.Usage.Seconds
		known.Add(s.Usage.Known(float64(s.CPUs)/float64(len(s.Nodes))), share)
	}
	return ForeignOf(o.Cores, o.CPU, o.IOWait, known)
}

// ForeignDuring returns the foreign load of a job's node during an epoch. since is as in UsageOf.
func ForeignDuring(e *Epoch, since time.Time, others []Span) Foreign {
	self := Span{JobID: e.JobID, Nodes: e.Nodes, CPUs: e.Processes()}
	return Observe(e, since).Foreign(self, others, e.At)
}

// Columns of foreign load in a regressor's file.
const (
	ColumnForeignCPU    = "foreign_cpu_ratio"
	ColumnForeignIOWait = "foreign_io_wait_ratio"
)

// ForeignColumn is a column of foreign load in a regressor's file.
type ForeignColumn struct {
	Name    string  // ColumnForeignCPU or ColumnForeignIOWait
	Typical float64 // replaces an unknown value
	Max     float64 // largest value of the examples
}

// Ratio returns the ratio of a load that the column contains.
func (c ForeignColumn) Ratio(l *Load) Ratio { return *c.ratio(l) }

func (c ForeignColumn) ratio(l *Load) *Ratio {
	if c.Name == ColumnForeignCPU {
		return &l.ForeignCPURatio
	}
	return &l.ForeignIOWaitRatio
}

// ForeignColumns are the columns of foreign load of a regressor.
type ForeignColumns []ForeignColumn

// Add returns the columns with a column of a file, unless it contains no foreign load.
func (all ForeignColumns) Add(name string, typical, largest float64) ForeignColumns {
	if name != ColumnForeignCPU && name != ColumnForeignIOWait {
		return all
	}
	return append(slices.Clip(all), ForeignColumn{name, typical, largest})
}

// Ratios returns the ratios of a load that have a column: the typical value where one is unknown,
// and 0 without a column.
func (all ForeignColumns) Ratios(l *Load) (cpu, ioWait float64) {
	for _, c := range all {
		value := c.Ratio(l).Or(c.Typical)
		if c.Name == ColumnForeignCPU {
			cpu = value
		} else {
			ioWait = value
		}
	}
	return cpu, ioWait
}

// AreKnown reports whether a load has all ratios that have a column.
func (all ForeignColumns) AreKnown(l *Load) bool {
	return !slices.ContainsFunc(all, func(c ForeignColumn) bool { return !c.ratio(l).Known })
}

// Busiest returns a load with the largest value of the examples for each unknown ratio that has a
// column.
func (all ForeignColumns) Busiest(l Load) Load {
	for _, c := range all {
		if r := c.ratio(&l); !r.Known {
			*r = RatioOf(c.Max)
		}
	}
	return l
}
