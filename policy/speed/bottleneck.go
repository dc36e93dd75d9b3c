package speed

import (
	"math"

	"courier/schemas"
)

// StepReport is the telemetry of a job over one report interval. Ratios are 0 to 1, and 0 if they are
// unknown.
//
// A worker sends and receives one after the other, so LinkRatio counts the bytes of both directions,
// up to what one of them can carry.
type StepReport struct {
	Shape       Shape
	StepSeconds float64 // mean

	WorkerCPURatio      float64 // used by the workers, of their cores
	ServerCPURatio      float64 // used by the servers, of their cores
	LinkRatio           float64 // bytes of the busiest link, of what it can carry
	MemoryPressureRatio float64 // stalled time, PSI memory
	IOWaitRatio         float64 // of the job's CPU time, or of the node
	IOPressureRatio     float64 // stalled time, PSI io
	InputWaitRatio      float64 // of the time, in which the training waited for batches
	// CPUPressureRatio is the part of the time in which a process of the job waited for a CPU;
	// UnknownPressure if that is unknown and the node is full.
	CPUPressureRatio float64
}

// IsStable reports whether the last reports show a job that can be judged: enough of them, in one
// shape, with similar step times. Two are enough for threads that wait for CPUs, which can make a step ten
// times longer: a move rests on their waits, which scatter less than speeds.
func IsStable(window []StepReport) bool {
	mean := MeanOf(window)
	if len(window) < 2 || len(window) < MinReports && !mean.hasTooManyThreads() {
		return false
	}
	var sum, squares float64
	for i := range window {
		s := window[i].StepSeconds
		if window[i].Shape != window[0].Shape || !(s > 0) || math.IsInf(s, 1) {
			return false
		}
		sum += s
		squares += s * s
	}
	n := float64(len(window))
	variance := max(0, squares/n-sum*sum/n/n) * n / (n - 1)
	return math.Sqrt(variance) <= maxVariation*mean.StepSeconds
}

// FindBottleneck returns the first bottleneck that a stable window shows, or "". surplusLoss is the part
// of its speed that the job would lose with one core less.
func FindBottleneck(window []StepReport, surplusLoss float64) schemas.Bottleneck {
	m := MeanOf(window)
	switch {
	case reaches(m.MemoryPressureRatio, memoryPressureThreshold):
		return schemas.BottleneckMemory
	case reaches(m.IOWaitRatio, ioWaitThreshold) || reaches(m.IOPressureRatio, ioPressureThreshold):
		return schemas.BottleneckInput
	case reaches(m.WorkerCPURatio, CPUThreshold):
		return schemas.BottleneckCPU
	case reaches(m.InputWaitRatio, inputWaitThreshold):
		return schemas.BottleneckInput
	case m.hasTooManyThreads():
		return schemas.BottleneckThreads
	case m.IsContended():
		return schemas.BottleneckCPU
	case m.IsIdle() && m.CPUPressureRatio < surplusPressureThreshold &&
		reaches(surplusLossThreshold, surplusLoss):
		return schemas.BottleneckSurplus
	}
	return ""
}

// IsContended reports whether the job waits for CPUs and does not get those that it holds: the node has
// fewer free ones than its jobs have threads. A job that sleeps most of the time is not slowed down by that.
func (r *StepReport) IsContended() bool {
	return r.WorkerCPURatio > 0 && !reaches(r.WorkerCPURatio, CPUThreshold) &&
		reaches(r.CPUPressureRatio, contentionThreshold) &&
		reaches(r.WorkerCPURatio+r.CPUPressureRatio, demandThreshold)
}

// hasTooManyThreads reports whether the job is contended, so that fewer CPUs may make it faster.
func (r *StepReport) hasTooManyThreads() bool { return r.IsContended() && r.Shape.WorkerCores > 1 }

// IsIdle reports whether the job hardly uses its CPUs, and would not if none of its processes waited for one.
func (r *StepReport) IsIdle() bool {
	return r.WorkerCPURatio > 0 && reaches(surplusCPUThreshold, r.WorkerCPURatio+r.CPUPressureRatio)
}

// reaches reports whether a mean is at least a threshold, but for rounding.
func reaches(mean, threshold float64) bool { return mean >= threshold-1e-9 }

// MeanOf returns the means of the numbers of a window.
func MeanOf(window []StepReport) StepReport {
	var m StepReport
	if len(window) == 0 {
		return m
	}
	part := 1 / float64(len(window))
	m.Shape = window[0].Shape
	for i := range window {
		r := &window[i]
		m.StepSeconds += part * r.StepSeconds
		m.WorkerCPURatio += part * r.WorkerCPURatio
		m.ServerCPURatio += part * r.ServerCPURatio
		m.LinkRatio += part * r.LinkRatio
		m.MemoryPressureRatio += part * r.MemoryPressureRatio
		m.IOWaitRatio += part * r.IOWaitRatio
		m.IOPressureRatio += part * r.IOPressureRatio
		m.InputWaitRatio += part * r.InputWaitRatio
		m.CPUPressureRatio += part * r.CPUPressureRatio
	}
	return m
}
