package cluster

import (
	"courier/policy/speed"
	"courier/schemas"
)

// EpochUse is what a run on one node used in an epoch, for its bottleneck. Ratios are 0 to 1, and 0
// if they are unknown.
type EpochUse struct {
	Batch   uint32  `json:"batch"`
	CPUs    uint32  `json:"cpus"`
	Seconds float64 `json:"seconds"`
	// CPURatio is the used part of the granted CPUs; 1 also if the job used more than these.
	CPURatio float64 `json:"cpu_ratio,omitempty"`
	// CPUPressureRatio is the part of the time in which a process of the job waited for a CPU; 1 if
	// that is unknown and the node is full.
	CPUPressureRatio    float64 `json:"cpu_pressure_ratio,omitempty"`
	IOWaitRatio         float64 `json:"io_wait_ratio,omitempty"` // of the job's CPUs, or the node's
	IOPressureRatio     float64 `json:"io_pressure_ratio,omitempty"`
	MemoryPressureRatio float64 `json:"memory_pressure_ratio,omitempty"`
}

// useOf returns what an epoch used. The figures of the job itself count more than those of its node,
// which other jobs share.
func useOf(e *schemas.Epoch) EpochUse {
	valueOf := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	cpuSeconds := float64(e.CPUs) * e.DurationSeconds
	u := EpochUse{
		Batch:               e.BatchSize,
		CPUs:                e.CPUs,
		Seconds:             e.DurationSeconds,
		CPURatio:            min(1, valueOf(e.JobCPUSeconds)/cpuSeconds),
		CPUPressureRatio:    valueOf(e.JobCPUPressureRatio),
		IOPressureRatio:     valueOf(e.JobIOPressureRatio),
		MemoryPressureRatio: valueOf(e.JobMemoryPressureRatio),
	}
	if e.JobCPUPressureRatio == nil && valueOf(e.NodeCPURatio) >= speed.CPUThreshold {
		u.CPUPressureRatio = 1
	}
	switch {
	case e.JobIOWaitSeconds != nil:
		u.IOWaitRatio = min(1, *e.JobIOWaitSeconds/cpuSeconds)
	case e.JobIOPressureRatio == nil:
		u.IOWaitRatio = valueOf(e.NodeIOWaitRatio)
	}
	return u
}
