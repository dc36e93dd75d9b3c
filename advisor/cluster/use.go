package cluster

import (
	"courier/policy/speed"
	"courier/schemas"
)

// EpochUse is what a run on one node used in an epoch, for its bottleneck. Ratios are 0 to 1, and 0
// if they are unknown. WorkerCPURatio is also 1 if the job used more CPUs than it was granted.
type EpochUse struct {
	Batch     uint32 `json:"batch"`
	IsCrowded bool   `json:"is_crowded,omitempty"` // the node had fewer CPUs than processes
	speed.StepReport
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
	cpuSeconds := float64(e.Processes()) * e.DurationSeconds
	u := EpochUse{Batch: e.BatchSize}
	u.StepReport = speed.StepReport{
		Shape:               speed.Shape{Workers: 1, WorkerCores: int(e.Processes())},
		StepSeconds:         e.DurationSeconds,
		WorkerCPURatio:      min(1, valueOf(e.JobCPUSeconds)/cpuSeconds),
		IOPressureRatio:     valueOf(e.JobIOPressureRatio),
		MemoryPressureRatio: valueOf(e.JobMemoryPressureRatio),
		InputWaitRatio:      min(1, valueOf(e.InputWaitSeconds)/e.DurationSeconds),
		CPUPressureRatio:    valueOf(e.JobCPUPressureRatio),
	}
	if e.JobCPUPressureRatio == nil && valueOf(e.NodeCPURatio) >= speed.CPUThreshold {
		u.CPUPressureRatio = speed.UnknownPressure
	}
	if e.JobIOPressureRatio == nil {
		u.IOWaitRatio = valueOf(e.NodeIOWaitRatio)
	}
	return u
}
