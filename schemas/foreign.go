package schemas

import "time"

// Foreign is the load of a node that comes from none of the jobs that Courier knows. Both ratios
// are rounded to steps of a tenth: loads that differ by less are one level of a feature.
type Foreign struct {
	// CPU is the share of the node's processors that other work takes, or would take beside
	// idle jobs: work that shares busy processors with jobs gets less than it wants.
	CPU Ratio
	// IOWait is the share of the node's processors that idle while other work waits for storage.
	// It is unknown where the processors are busy, because a busy processor hides it.
	IOWait Ratio
}

// Set writes the ratios into a load.
func (f Foreign) Set(l *Load) { l.ForeignCPURatio, l.ForeignIOWaitRatio = f.CPU, f.IOWait }

const (
	// saturatedRatio is the busy share of a node from which on its processors are contended.
	saturatedRatio = 0.9
	// hungryShare is the part of a thread's fair share of contended processors from which on
	// foreign work counts as at least one thread that wants more.
	hungryShare = 0.75
	// quietBytesPerSecond is the storage traffic under which a job does not wait for storage.
	quietBytesPerSecond = 16 << 10
)

// Known is the part of a node's load that is due to known jobs.
type Known struct {
	Processes float64 // of the jobs
	CPU       float64 // processors that they keep busy
	IOWait    float64 // threads of theirs that wait for storage
	HasIOWait bool    // IOWait is known
}

// ForeignOf splits a node's load: what the known jobs do not explain is foreign. cpu and ioWait are
// the node's ratios.
//
// Where processors are contended, every thread gets the same share of them. Foreign work that got
// at least such a share wants more: as many processors as it got shares.
func ForeignOf(cores uint32, cpu, ioWait Ratio, known Known) (f Foreign) {
	if cores == 0 || !cpu.Known {
		return f
	}
	n := float64(cores)
	foreign := max(0, cpu.Value*n-known.CPU)
	if share := known.CPU / known.Processes; cpu.Value >= saturatedRatio && known.Processes > 0 &&
		share > 0 && share < 1 && foreign >= hungryShare*share {
		foreign /= share
	}
	f.CPU = RatioOf(foreign / n).Tenths()

	if ioWait.Known && cpu.Value < saturatedRatio && known.HasIOWait {
		f.IOWait = RatioOf(ioWait.Value - known.IOWait/n).Tenths()
	}
	return f
}

// Usage adds up what a job took in some of its epochs.
type Usage struct {
	CPUSeconds    float64 // CPU time
	Seconds       float64 // of the epochs whose CPU time is known
	IOWaitSeconds float64 // time that its threads waited for storage
	IOSeconds     float64 // of the epochs for which that is known
}

// UsageOf returns what a job took in an epoch. since is when the epoch before it ended or its run
// started: the epoch's figures cover the time since then.
func UsageOf(e *Epoch, since time.Time) (u Usage) {
	seconds := observedSeconds(e, since)
	if seconds == 0 {
		return u
	}
	if e.JobCPUSeconds != nil {
		u.CPUSeconds, u.Seconds = *e.JobCPUSeconds, seconds
	}
	switch {
	case e.JobIOWaitSeconds != nil:
		u.IOWaitSeconds, u.IOSeconds = *e.JobIOWaitSeconds, seconds
	case e.JobReadBytes != nil && e.JobWrittenBytes != nil &&
		*e.JobReadBytes+*e.JobWrittenBytes <= quietBytesPerSecond*seconds:
		u.IOSeconds = seconds
	}
	return u
}

// observedSeconds is the time that an epoch's figures of node and job cover; 0 if it is unclear.
// Epochs that were reported together share their figures, so that a duration in the job's own
// output fits the time between reports only where there is one epoch in it.
func observedSeconds(e *Epoch, since time.Time) float64 {
	if e.DurationSource == DurationArrival {
		return e.DurationSeconds
	}
	const longer = 1.5 // than the epoch: it was reported with others, or there is a start-up
	gap := e.At.Sub(since).Seconds()
	if since.IsZero() || gap < e.DurationSeconds/longer || gap > e.DurationSeconds*longer {
		return 0
	}
	return gap
}

// Add adds the usage of another epoch.
func (u *Usage) Add(o Usage) {
	u.CPUSeconds, u.Seconds = u.CPUSeconds+o.CPUSeconds, u.Seconds+o.Seconds
	u.IOWaitSeconds, u.IOSeconds = u.IOWaitSeconds+o.IOWaitSeconds, u.IOSeconds+o.IOSeconds
}

// Known returns what a job with some processes takes of a node. One whose CPU time is unknown
// keeps a processor busy with each of them.
func (u Usage) Known(processes float64) Known {
	k := Known{Processes: processes, CPU: processes}
	if u.Seconds > 0 {
		k.CPU = u.CPUSeconds / u.Seconds
	}
	if k.HasIOWait = u.IOSeconds > 0; k.HasIOWait {
		k.IOWait = u.IOWaitSeconds / u.IOSeconds
	}
	return k
}

// Add adds what another job takes for a share of the time.
func (k *Known) Add(o Known, share float64) {
	k.Processes += share * o.Processes
	k.CPU += share * o.CPU
	k.IOWait += share * o.IOWait
	k.HasIOWait = k.HasIOWait && (o.HasIOWait || share == 0)
}

// Observation is what an epoch tells of its job and its node. It is all that is needed of an epoch
// to split the load of its node, once its neighbours are known.
type Observation struct {
	Usage  Usage
	Cores  uint32 // processors of the node
	CPU    Ratio  // busy share of the node
	IOWait Ratio  // IO-wait share of the node
}

// Observe returns what an epoch tells of its job and its node. since is as in UsageOf.
func Observe(e *Epoch, since time.Time) Observation {
	return Observation{
		Usage: UsageOf(e, since), Cores: e.NodeCores,
		CPU: RatioAt(e.NodeCPURatio), IOWait: RatioAt(e.NodeIOWaitRatio),
	}
}

// Foreign returns the foreign load of the node of the job self in an epoch that ended at until,
// beside the spans of other jobs. It is unknown for a job on several nodes, because the figures are
// those of one of them, and where the job's own CPU time is unknown.
func (o Observation) Foreign(self Span, others []Span, until time.Time) (f Foreign) {
	if len(self.Nodes) != 1 || o.Usage.Seconds == 0 {
		return f
	}
	known := o.Usage.Known(float64(self.CPUs))
	from := until.Add(-time.Duration(o.Usage.Seconds * float64(time.Second)))
	for i := range others {
		s := &others[i]
		if s.JobID == self.JobID || !s.on(self.Nodes[0]) {
			continue
		}
		share := s.overlap(from, until).Seconds() / o.Usage.Seconds
		known.Add(s.Usage.Known(float64(s.CPUs)/float64(len(s.Nodes))), share)
	}
	return ForeignOf(o.Cores, o.CPU, o.IOWait, known)
}

// ForeignDuring returns the foreign load of a job's node during an epoch. since is as in UsageOf.
func ForeignDuring(e *Epoch, since time.Time, others []Span) Foreign {
	self := Span{JobID: e.JobID, Nodes: e.Nodes, CPUs: e.CPUs}
	return Observe(e, since).Foreign(self, others, e.At)
}
