package fit

import (
	"math"
	"slices"

	"courier/policy"
	"courier/policy/speed"
	"courier/schemas"
)

// Node is the policy for the jobs of a node, whose units are CPUs. Each CPU goes where it adds most to the
// logarithm of a speed by the models of the jobs, and stays free if it adds too little anywhere. So a CPU
// that does not help its job goes to another one, and jobs that use all of their CPUs share them evenly. A
// job keeps its promise, and one whose epochs show nothing yet keeps its CPUs, unless the node is full
// (policy.Guard). The runner judges a move and undoes it, and refuses one that does not pay for a restart.
type Node struct{}

// Plan implements policy.Policy.
func (Node) Plan(v *policy.View) (moves []policy.Move) {
	cpus, free, held := make([]int, len(v.Jobs)), v.Units, 0
	for i := range v.Jobs {
		cpus[i] = fewestCPUs(v, &v.Jobs[i])
		free, held = free-cpus[i], held+v.Jobs[i].Units
	}
	policy.Redivide(v.Jobs, cpus, free, func(i, cpus int) (to int, value float64) {
		to, gain := nextCPUs(&v.Jobs[i], cpus)
		return to, gain / float64(to-cpus)
	})

	for i, n := range cpus {
		j := &v.Jobs[i]
		if n == j.Units {
			continue
		}
		m := policy.Move{Kind: policy.Resize, Job: j.ID, Units: n, Reason: policy.ReasonShare}
		if n > j.Units && n <= j.Floor { // for its deadline, by the predictions
			moves = append(moves, m)
			continue
		}
		m.Shape, m.Reason = shapeOf(n), policy.ReasonGrow
		mean := speed.MeanOf(j.Training.Window)
		m.SpeedRatio = mean.StepSeconds / j.Training.Model.StepSeconds(m.Shape)
		if n < j.Units {
			m.SpeedRatio = min(1, m.SpeedRatio) // it is not made for its own speed
			m.Reason = policy.ReasonExchange
			if _, gain := nextCPUs(j, n); gain == 0 {
				m.Reason = policy.ReasonSurplus
			} else if held > v.Units {
				m.Reason = policy.ReasonYield
			}
		}
		moves = append(moves, m)
	}
	return moves
}

// shapeOf returns the shape of a job of a node.
func shapeOf(cpus int) speed.Shape { return speed.Shape{Workers: 1, WorkerCores: cpus} }

// fewestCPUs returns the CPUs that a job keeps regardless of the other jobs.
func fewestCPUs(v *policy.View, j *policy.Job) int {
	switch {
	case j.Training == nil:
		return max(j.Floor, j.Units)
	case j.Deadline.IsZero():
		return j.Allowed[0]
	}
	for _, n := range j.Allowed {
		if n >= j.Floor && n < j.Units && j.KeepsClearly(v, n) {
			return n
		}
	}
	return max(j.Floor, j.Units)
}

// nextCPUs returns the next number of CPUs that a job may have, and the logarithm of the ratio of the
// speeds, at its lower bound for more CPUs than it holds. The gain is 0 if it is too small.
func nextCPUs(j *policy.Job, cpus int) (to int, gain float64) {
	at := slices.IndexFunc(j.Allowed, func(n int) bool { return n > cpus })
	if j.Training == nil || at < 0 {
		return 0, 0
	}
	to = j.Allowed[at]
	mean := speed.MeanOf(j.Training.Window)
	if cpus >= usefulCPUs(&mean, j.Training.Bottleneck) {
		return to, 0
	}
	gain, standardError := j.Training.Model.Gain(shapeOf(cpus), shapeOf(to))
	if to > j.Units {
		gain -= boundFactor * standardError
	}
	if growth := float64(to-cpus) / float64(cpus); math.Expm1(gain) < growthGainRatio*growth {
		return to, 0
	}
	return to, gain
}

// usefulCPUs returns the most CPUs that a job can use by the mean of its window.
func usefulCPUs(mean *speed.StepReport, limit schemas.Bottleneck) int {
	isWaiting := limit == schemas.BottleneckMemory || limit == schemas.BottleneckInput
	if limit == schemas.BottleneckSurplus || isWaiting && mean.WorkerCPURatio <= speed.StarvedCPUThreshold {
		return max(1, int(math.Ceil(mean.WorkerCPURatio*float64(mean.Shape.WorkerCores))))
	}
	return math.MaxInt
}
