package cluster

import (
	"slices"

	"courier/policy/speed"
	"courier/schemas"
)

// addUse records what an epoch used. It drops the epochs with another batch size or number of CPUs. A
// job on several nodes has no record, because its events have the figures of one node only.
func (j *Job) addUse(e *schemas.Epoch) {
	if len(e.Nodes) != 1 {
		j.Uses, j.FormerUses = nil, nil
		return
	}
	u := useOf(e)
	if n := len(j.Uses); n > 0 && (j.Uses[n-1].Batch != u.Batch || j.Uses[n-1].Shape != u.Shape) {
		j.endUses(u.Batch)
	}
	kept := j.Uses[max(0, len(j.Uses)+1-speed.MinReports):]
	j.Uses = append(slices.Clone(kept), u)
}

// maxFormerUses bounds the other numbers of CPUs of a run that are remembered.
const maxFormerUses = 8

// endUses keeps the mean of the recorded epochs, because the CPUs change. It drops everything if the
// batch size changes.
func (j *Job) endUses(batch uint32) {
	last := j.Uses[len(j.Uses)-1]
	if last.Batch != batch {
		j.Uses, j.FormerUses = nil, nil
		return
	}
	if speed.IsStable(reportsOf(j.Uses)) {
		mean := EpochUse{Batch: last.Batch, StepReport: speed.StepReport{
			Shape:          last.Shape,
			StepSeconds:    j.meanUse(func(u *EpochUse) float64 { return u.StepSeconds }),
			WorkerCPURatio: j.usedCPURatio(),
		}}
		kept := slices.DeleteFunc(slices.Clone(j.FormerUses), func(u EpochUse) bool {
			return u.Shape == mean.Shape
		})
		j.FormerUses = append(kept[max(0, len(kept)+1-maxFormerUses):], mean)
	}
	j.Uses = nil
}

// meanUse returns the mean of a figure over the recorded epochs; 0 without epochs.
func (j *Job) meanUse(figure func(u *EpochUse) float64) float64 {
	sum := 0.0
	for i := range j.Uses {
		sum += figure(&j.Uses[i])
	}
	return sum / float64(max(1, len(j.Uses)))
}

// usedCPURatio returns the used part of the job's CPUs; 0 if it is unknown.
func (j *Job) usedCPURatio() float64 {
	return j.meanUse(func(u *EpochUse) float64 { return u.WorkerCPURatio })
}

// Bottleneck returns what limits a running job by its last epochs; "" if they do not show it.
func (j *Job) Bottleneck() schemas.Bottleneck {
	if j.State != schemas.StateRunning || len(j.Uses) < speed.MinReports ||
		j.Uses[0].Shape.WorkerCores != int(j.Setting.CPUs) { // no epoch with the current CPUs has ended
		return ""
	}
	window := reportsOf(j.Uses)
	if !speed.IsStable(window) {
		return ""
	}

	// CPUs that the job did not use are a surplus only if it did not wait for them.
	scaling := speed.Scaling{SurplusLossRatio: 1}
	used, pressure := j.usedCPURatio(), j.meanUse(func(u *EpochUse) float64 { return u.CPUPressureRatio })
	if used > 0 && pressure < maxSurplusPressure {
		scaling.SurplusLossRatio = lossWithoutCPU(j.Uses[0].Shape.WorkerCores, used)
	}
	return bottleneckNames[speed.FindBottleneck(window, scaling)]
}

// reportsOf returns epochs as reports of policy/speed.
func reportsOf(uses []EpochUse) []speed.StepReport {
	window := make([]speed.StepReport, len(uses))
	for i := range uses {
		window[i] = uses[i].StepReport
	}
	return window
}

// maxSurplusPressure bounds the CPU pressure of a job with a surplus. It is the pressure at which
// policy/speed takes a job to wait for memory.
const maxSurplusPressure = 0.1

// bottleneckNames are the bottlenecks that a job on one node can have.
var bottleneckNames = map[speed.Bottleneck]schemas.Bottleneck{
	speed.BottleneckMemory:    schemas.BottleneckMemory,
	speed.BottleneckInput:     schemas.BottleneckInput,
	speed.BottleneckWorkerCPU: schemas.BottleneckCPU,
	speed.BottleneckSurplus:   schemas.BottleneckSurplus,
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

// IsStarved reports whether more CPUs would not make a running job faster, because it waits for its
// memory or storage and does not use those that it has.
func (j *Job) IsStarved() bool {
	b, used := j.Bottleneck(), j.usedCPURatio()
	isWaiting := b == schemas.BottleneckMemory || b == schemas.BottleneckInput
	return isWaiting && used > 0 && used <= speed.StarvedCPUThreshold
}

// SeenShapes returns the times and the CPU use of a running job's epochs, by its numbers of CPUs; none if its
// CPUs do not limit it.
func (j *Job) SeenShapes() (seen []speed.ShapeTime) {
	if j.Bottleneck() != schemas.BottleneckCPU {
		return nil
	}
	for i := range j.FormerUses {
		former := speed.NewShapeTime(reportsOf(j.FormerUses[i : i+1]))
		former.Reports = speed.MinReports
		seen = append(seen, former)
	}
	return append(seen, speed.NewShapeTime(reportsOf(j.Uses)))
}
