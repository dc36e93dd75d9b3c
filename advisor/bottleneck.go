package advisor

import (
	"slices"

	"courier/policy/fit"
	"courier/schemas"
)

// usedEpochs is the number of epochs that show a bottleneck: the reports of a window (resource
// policies, section 3.1).
const usedEpochs = 3

// epochUse is what a run on one node used in an epoch, for its bottleneck. Ratios are 0 to 1, and 0
// if they are unknown.
type epochUse struct {
	Batch   uint32  `json:"batch"`
	CPUs    uint32  `json:"cpus"`
	Seconds float64 `json:"seconds"`
	// CPURatio is the used part of the granted CPUs; above 1 if nobody else needed the others.
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
func useOf(e *schemas.Epoch) epochUse {
	valueOf := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	u := epochUse{
		Batch:               e.BatchSize,
		CPUs:                e.CPUs,
		Seconds:             e.DurationSeconds,
		CPURatio:            valueOf(e.JobCPUSeconds) / (float64(e.CPUs) * e.DurationSeconds),
		CPUPressureRatio:    valueOf(e.JobCPUPressureRatio),
		IOPressureRatio:     valueOf(e.JobIOPressureRatio),
		MemoryPressureRatio: valueOf(e.JobMemoryPressureRatio),
	}
	if e.JobCPUPressureRatio == nil && valueOf(e.NodeCPURatio) >= fullCPURatio {
		u.CPUPressureRatio = 1
	}
	switch {
	case e.JobIOWaitSeconds != nil:
		u.IOWaitRatio = min(1, *e.JobIOWaitSeconds/(float64(e.CPUs)*e.DurationSeconds))
	case e.JobIOPressureRatio == nil:
		u.IOWaitRatio = valueOf(e.NodeIOWaitRatio)
	}
	return u
}

// fullCPURatio is the use of a node from which its processes are taken to wait for each other. It is
// that of a busy CPU in policy/fit.
const fullCPURatio = 0.85

// addUse records what an epoch used. Epochs of another batch size or number of CPUs show nothing about
// the present one. The events of a job on several nodes have the figures of one node only, so they
// are not used.
func (j *Job) addUse(e *schemas.Epoch) {
	u := useOf(e)
	if len(e.Nodes) != 1 {
		j.uses = nil
		return
	}
	if n := len(j.uses); n > 0 && (j.uses[n-1].Batch != u.Batch || j.uses[n-1].CPUs != u.CPUs) {
		j.uses = nil
	}
	kept := j.uses[max(0, len(j.uses)+1-usedEpochs):]
	j.uses = append(slices.Clone(kept), u)
}

// bottleneck returns what limits a running job by its last epochs; "" if they do not show it.
func (j *Job) bottleneck() schemas.Bottleneck {
	if j.State != schemas.StateRunning || len(j.uses) < usedEpochs {
		return ""
	}
	window, cpuRatio, pressure := make([]fit.StepReport, 0, usedEpochs), 0.0, 0.0
	cpus := int(j.uses[0].CPUs)
	for _, u := range j.uses {
		window = append(window, fit.StepReport{
			Shape:               fit.Shape{Workers: 1, WorkerCores: cpus},
			StepSeconds:         u.Seconds,
			WorkerCPURatio:      u.CPURatio,
			MemoryPressureRatio: u.MemoryPressureRatio,
			IOWaitRatio:         u.IOWaitRatio,
			IOPressureRatio:     u.IOPressureRatio,
		})
		cpuRatio += u.CPURatio / usedEpochs
		pressure += u.CPUPressureRatio / usedEpochs
	}
	if !fit.IsStable(window, fit.Options{}) {
		return ""
	}
	scaling := fit.Scaling{SurplusLossRatio: 1}
	if cpuRatio > 0 && pressure < maxSurplusPressure {
		scaling.SurplusLossRatio = lossWithoutCPU(cpus, cpuRatio)
	}
	return bottleneckNames[fit.FindBottleneck(window, scaling, fit.Options{})]
}

// maxSurplusPressure is the pressure from which unused CPUs may be those that other processes took: the
// threshold of policy/fit for memory.
const maxSurplusPressure = 0.1

// bottleneckNames are the bottlenecks that a job on one node can have.
var bottleneckNames = map[fit.Bottleneck]schemas.Bottleneck{
	fit.BottleneckMemory:    schemas.BottleneckMemory,
	fit.BottleneckInput:     schemas.BottleneckInput,
	fit.BottleneckWorkerCPU: schemas.BottleneckCPU,
	fit.BottleneckSurplus:   schemas.BottleneckSurplus,
}

// lossWithoutCPU returns the speed that a job loses with one CPU less, relative to its speed. By
// Amdahl's law (AFIPS 1967) the time of an epoch is that of a serial part and of a part that divides
// evenly among the CPUs; the mean use of the CPUs shows their ratio.
func lossWithoutCPU(cpus int, usedRatio float64) float64 {
	if cpus <= 1 || usedRatio >= 1 {
		return 1 / float64(cpus)
	}
	busy := usedRatio * float64(cpus)
	parallel := max(0, busy-1) / (1 - usedRatio) // CPU time, relative to the serial part
	seconds := func(cpus int) float64 { return 1 + parallel/float64(cpus) }
	return 1 - seconds(cpus)/seconds(cpus-1)
}

// starvedRatio is the use of its CPUs up to which a job that waits for memory or storage gains nothing
// from more of them: the threshold of policy/fit for a starved CPU.
const starvedRatio = 0.6

// isStarved reports whether more CPUs would not make a running job faster, because it waits for its
// memory or storage and does not use those that it has.
func (j *Job) isStarved() bool {
	switch j.bottleneck() {
	case schemas.BottleneckMemory, schemas.BottleneckInput:
	default:
		return false
	}
	used := 0.0
	for _, u := range j.uses {
		used += u.CPURatio / usedEpochs
	}
	return used > 0 && used <= starvedRatio
}
