package cluster

import (
	"slices"

	"courier/policy/speed"
	"courier/schemas"
)

// addUse records what an epoch used, and whether the node had fewer CPUs than processes. It drops the epochs
// with another batch size or number of CPUs. A job on several nodes has no record, because its events have
// the figures of one node only.
func (j *Job) addUse(e *schemas.Epoch, isCrowded bool) {
	if len(e.Nodes) != 1 {
		j.Uses, j.FormerUses = nil, nil
		return
	}
	u := useOf(e)
	u.IsCrowded = isCrowded
	if n := len(j.Uses); n > 0 && (j.Uses[n-1].Batch != u.Batch || j.Uses[n-1].Shape != u.Shape) {
		j.endUses(u.Batch)
	}
	kept := j.Uses[max(0, len(j.Uses)+1-speed.MinReports):]
	j.Uses = append(slices.Clone(kept), u)
}

// maxFormerUses bounds the other numbers of CPUs of a run that are remembered.
const maxFormerUses = 8

// endUses keeps the mean of the recorded epochs, because the CPUs change. Epochs that waited for CPUs, or on
// a node with more processes than CPUs, do not show how the job runs with them: threads that wait for a
// slow one sleep, and no pressure shows it. It drops everything if the batch size changes.
func (j *Job) endUses(batch uint32) {
	last := j.Uses[len(j.Uses)-1]
	if last.Batch != batch {
		j.Uses, j.FormerUses = nil, nil
		return
	}
	window := reportsOf(j.Uses)
	isCrowded := slices.ContainsFunc(j.Uses, func(u EpochUse) bool { return u.IsCrowded })
	if m := speed.MeanOf(window); speed.IsStable(window) && !isCrowded && !m.IsContended() {
		mean := EpochUse{Batch: last.Batch, StepReport: speed.StepReport{
			Shape:          last.Shape,
			StepSeconds:    m.StepSeconds,
			WorkerCPURatio: m.WorkerCPURatio,
		}}
		kept := slices.DeleteFunc(slices.Clone(j.FormerUses), func(u EpochUse) bool {
			return u.Shape == mean.Shape
		})
		j.FormerUses = append(kept[max(0, len(kept)+1-maxFormerUses):], mean)
	}
	j.Uses = nil
}

// LastUse returns the mean of the last epochs of a run, possibly with other CPUs than it has now.
func (j *Job) LastUse() speed.StepReport { return speed.MeanOf(reportsOf(j.Uses)) }

// Window returns the last epochs of a running job if they show how it runs with its current CPUs; nil if
// they do not.
func (j *Job) Window() []speed.StepReport {
	if j.State != schemas.StateRunning || len(j.Uses) == 0 ||
		j.Uses[0].Shape.WorkerCores != int(j.Setting.Processes()) { // no epoch with the current CPUs has ended
		return nil
	}
	if window := reportsOf(j.Uses); speed.IsStable(window) {
		return window
	}
	return nil
}

// Bottleneck returns what limits a running job by its last epochs; "" if they do not show it.
func (j *Job) Bottleneck() schemas.Bottleneck {
	window := j.Window()
	if window == nil {
		return ""
	}
	return speed.FindBottleneck(window, lossWithoutCPU(window[0].Shape.WorkerCores, j.LastUse().WorkerCPURatio))
}

// reportsOf returns epochs as reports of policy/speed.
func reportsOf(uses []EpochUse) []speed.StepReport {
	window := make([]speed.StepReport, len(uses))
	for i := range uses {
		window[i] = uses[i].StepReport
	}
	return window
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
	b, used := j.Bottleneck(), j.LastUse().WorkerCPURatio
	isWaiting := b == schemas.BottleneckMemory || b == schemas.BottleneckInput
	return isWaiting && used > 0 && used <= speed.StarvedCPUThreshold
}

// MoreLoaders returns a move to the next larger number of data loaders for a running job that waits for its
// input; nil if it does not, or keeps its loaders. The ratio of the speeds assumes that a loader needs as
// long for each batch as now; without loaders the training loads the batches itself.
func (j *Job) MoreLoaders() *schemas.PlannedMove {
	if !j.MovesLoaders || j.Request == nil || j.Bottleneck() != schemas.BottleneckInput {
		return nil
	}
	from, to := j.Setting.Loaders, uint32(0)
	for _, n := range j.Request.Loaders {
		if n > int(from) && (to == 0 || n < int(to)) {
			to = uint32(n)
		}
	}
	window := speed.MeanOf(j.Window())
	if to == 0 || window.InputWaitRatio == 0 {
		return nil
	}
	input := float64(max(1, from)) / float64(to) // of the present epoch
	if from == 0 {
		input *= window.InputWaitRatio
	}
	return &schemas.PlannedMove{
		Purpose:     schemas.MoveInput,
		FromCPUs:    j.Setting.CPUs,
		ToCPUs:      j.Setting.CPUs,
		FromLoaders: from,
		ToLoaders:   to,
		Bottleneck:  schemas.BottleneckInput,
		SpeedRatio:  1 / max(input, 1-window.InputWaitRatio),
	}
}

// FormerShapes returns the times and the CPU use of a running job's epochs with other numbers of CPUs.
func (j *Job) FormerShapes() (seen []speed.ShapeTime) {
	for i := range j.FormerUses {
		former := speed.NewShapeTime(reportsOf(j.FormerUses[i : i+1]))
		former.Reports = speed.MinReports
		seen = append(seen, former)
	}
	return seen
}
