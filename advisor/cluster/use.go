package cluster

import (
	"courier/policy/speed"
	"courier/schemas"
)

// EpochUse is what a run on one node used in an epoch, for its bottleneck. Ratios are 0 to 1, and 0
// if they are unknown. WorkerCPURatio is also 1 if the job used more CPUs than it was granted.
type EpochUse struct {
	Batch uint32 `json:"batch"`
	speed.StepReport
	// CPUPressureRatio is the part of the time in which a process of the job waited for a CPU; 1 if
	// that is unknown and the node is full.
	CPUPressureRatio float64 `json:"cpu_pressure_ratio,omitempty"`
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
	u := EpochUse{Batch: e.BatchSize, CPUPressureRatio: valueOf(e.JobCPUPressureRatio)}
	u.StepReport = speed.StepReport{
		Shape:               speed.Shape{Workers: 1, WorkerCores: int(e.CPUs)},
		StepSeconds:         e.DurationSeconds,
		WorkerCPURatio:      min(1, valueOf(e.JobCPUSeconds)/cpuSeconds),
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
