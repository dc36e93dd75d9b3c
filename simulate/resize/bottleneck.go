package resize

import "courier/policy/fit"

// trueBottleneck returns what takes most of a step: the computation of the workers, the updates of
// the servers, the transfers, or the fixed and coordinating rest, which only more workers outweigh.
// Only more workers help a job, too, whose workers compute with more cores than they can use.
func (j *GuessedJob) trueBottleneck(s fit.Shape) fit.Bottleneck {
	p := j.parts(s)
	switch max(p.compute, p.update, p.transfer, p.rest) {
	case p.compute:
		if float64(s.WorkerCores) > j.Truth.Knee {
			return fit.BottleneckParallelism
		}
		return fit.BottleneckWorkerCPU
	case p.update:
		return fit.BottleneckServerCPU
	case p.transfer:
		return fit.BottleneckNetwork
	}
	return fit.BottleneckParallelism
}

// isClear reports whether one part takes most of a step.
func (j *GuessedJob) isClear(s fit.Shape) bool {
	p := j.parts(s)
	return max(p.compute, p.update, p.transfer, p.rest) >= clearRatio*j.Truth.StepSeconds(s)
}

// clearRatio of a step is a bottleneck beyond doubt.
const clearRatio = 0.85

// compareBottleneck counts whether the bottleneck of a window is the true one.
func (r *resizeRun) compareBottleneck(v *fit.ResizableJob, t *runningTraining) {
	if !fit.IsStable(v.Window) {
		return
	}
	job, isClear := t.result.Job, 0
	if job.isClear(v.Shape) {
		isClear = 1
	}
	r.outcome.Windows++
	r.outcome.ClearWindows += isClear
	if fit.FindBottleneck(v.Window, v.Scaling) == job.trueBottleneck(v.Shape) {
		r.outcome.Named++
		r.outcome.ClearNamed += isClear
	}
}
