package speed

import "math"

// StepReport is the telemetry of a job over one report interval. Ratios are 0 to 1.
//
// A worker sends and receives one after the other, so LinkRatio counts the bytes of both directions,
// up to what one of them can carry. StragglerRatio compares the workers' own step times, without
// their waits for each other.
type StepReport struct {
	Shape       Shape
	StepSeconds float64 // mean

	WorkerCPURatio      float64 // used by the workers, of their cores
	ServerCPURatio      float64 // used by the servers, of their cores
	LinkRatio           float64 // bytes of the busiest link, of what it can carry
	MemoryRatio         float64 // of the limit
	MemoryPressureRatio float64 // stalled time, PSI memory
	IOWaitRatio         float64 // of the node
	IOPressureRatio     float64 // stalled time, PSI io
	StragglerRatio      float64 // largest divided by the median step time of the workers
}

// Bottleneck is what limits a job.
type Bottleneck string

// Bottlenecks, in the order in which they are looked for.
const (
	BottleneckMemory      Bottleneck = "memory"
	BottleneckStraggler   Bottleneck = "straggler"
	BottleneckInput       Bottleneck = "input"
	BottleneckNetwork     Bottleneck = "network"
	BottleneckServerCPU   Bottleneck = "server CPU"
	BottleneckWorkerCPU   Bottleneck = "worker CPU"
	BottleneckParallelism Bottleneck = "parallelism" // none of the above: more workers help
	BottleneckSurplus     Bottleneck = "surplus"     // the job has more than it uses
	BottleneckNone        Bottleneck = "none"
)

// Scaling is what is known about the effect of workers and cores beyond the present window.
type Scaling struct {
	// SlowerWithWorkers: a step took longer with more workers.
	SlowerWithWorkers bool
	// LastWorkerGainRatio is the speed that the last worker added, relative to a proportional gain.
	LastWorkerGainRatio float64
	// SurplusLossRatio is the speed that the job loses without the cores that idle most.
	SurplusLossRatio float64
}

// IsStable reports whether the last reports show a job that can be judged: enough of them, in one
// shape, with similar step times.
func IsStable(window []StepReport) bool {
	if len(window) < MinReports {
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
	mean := sum / n
	variance := max(0, squares/n-mean*mean) * n / max(1, n-1)
	return math.Sqrt(variance) <= maxVariation*mean
}

// FindBottleneck returns the first bottleneck that a stable window shows.
func FindBottleneck(window []StepReport, s Scaling) Bottleneck {
	m := MeanOf(window)
	idle := m.WorkerCPURatio
	if m.Shape.Servers > 0 {
		idle = min(idle, m.ServerCPURatio)
	}
	switch {
	case reaches(m.MemoryRatio, memoryThreshold) || reaches(m.MemoryPressureRatio, memoryPressureThreshold):
		return BottleneckMemory
	case hasStraggler(window):
		return BottleneckStraggler
	case reaches(m.IOWaitRatio, ioWaitThreshold) || reaches(m.IOPressureRatio, ioPressureThreshold):
		return BottleneckInput
	case reaches(m.LinkRatio, linkThreshold), s.SlowerWithWorkers && reaches(StarvedCPUThreshold, m.WorkerCPURatio):
		return BottleneckNetwork
	case reaches(m.ServerCPURatio, CPUThreshold):
		return BottleneckServerCPU
	case reaches(m.WorkerCPURatio, CPUThreshold):
		return BottleneckWorkerCPU
	case reaches(s.LastWorkerGainRatio, workerGainThreshold):
		return BottleneckParallelism
	case reaches(surplusCPUThreshold, idle) && reaches(surplusLossThreshold, s.SurplusLossRatio):
		return BottleneckSurplus
	}
	return BottleneckNone
}

// reaches reports whether a mean is at least a threshold, but for rounding.
func reaches(mean, threshold float64) bool { return mean >= threshold-1e-9 }

// hasStraggler reports whether one worker was slow in every report of the last window.
func hasStraggler(window []StepReport) bool {
	if len(window) < MinReports {
		return false
	}
	for _, r := range window[len(window)-MinReports:] {
		if !(r.StragglerRatio >= stragglerThreshold) {
			return false
		}
	}
	return true
}

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
		m.MemoryRatio += part * r.MemoryRatio
		m.MemoryPressureRatio += part * r.MemoryPressureRatio
		m.IOWaitRatio += part * r.IOWaitRatio
		m.IOPressureRatio += part * r.IOPressureRatio
		m.StragglerRatio += part * r.StragglerRatio
	}
	return m
}

// Shapes returns the candidate shapes of a bottleneck for the mean of a window. They may be invalid.
func (b Bottleneck) Shapes(mean *StepReport) []Shape {
	s := mean.Shape
	moreServers, fewerWorkers, moreWorkers := s, s, s
	moreServers.Servers++
	fewerWorkers.Workers--
	moreWorkers.Workers++

	switch b {
	case BottleneckInput:
		return []Shape{fewerWorkers}
	case BottleneckNetwork:
		return []Shape{moreServers, fewerWorkers}
	case BottleneckServerCPU:
		larger := s
		larger.ServerCores++
		if reaches(mean.ServerCPURatio, exhaustedCPUThreshold) {
			return []Shape{larger, moreServers, fewerWorkers}
		}
		return []Shape{larger, moreServers}
	case BottleneckWorkerCPU:
		larger := s
		larger.WorkerCores++
		return []Shape{larger, moreWorkers}
	case BottleneckParallelism:
		return []Shape{moreWorkers}
	case BottleneckSurplus:
		return []Shape{surplusOf(mean)}
	}
	return nil
}

// surplusOf returns the shape with one core less for each worker or server, whichever idles most. A
// job whose workers or servers have one core each loses one of them.
func surplusOf(mean *StepReport) Shape {
	s := mean.Shape
	isServer := s.Servers > 0 && mean.ServerCPURatio <= mean.WorkerCPURatio
	switch {
	case isServer && s.ServerCores > 1:
		s.ServerCores--
	case isServer:
		s.Servers--
	case s.WorkerCores > 1:
		s.WorkerCores--
	default:
		s.Workers--
	}
	return s
}

// slowerRatio is how much longer a step must take with the last worker to count as slower. Any worker
// costs some coordination, and a report has about this noise.
const slowerRatio = 0.05

// ScalingOf returns what a speed model predicts about the effect of workers and cores on a job with
// this window.
func ScalingOf(f Facts, m *Model, window []StepReport) Scaling {
	mean := MeanOf(window)
	s := mean.Shape
	var scaling Scaling
	if smaller := s; s.Workers > 1 {
		smaller.Workers--
		gain, _ := m.Gain(smaller, s)
		proportional := 1 / float64(smaller.Workers)
		scaling.LastWorkerGainRatio = math.Expm1(gain) / proportional
		scaling.SlowerWithWorkers = m.StepSeconds(s) > (1+slowerRatio)*m.StepSeconds(smaller)
	} else {
		scaling.LastWorkerGainRatio = 1
	}
	if surplus := surplusOf(&mean); surplus.IsValid(f.Architecture) {
		gain, _ := m.Gain(s, surplus)
		scaling.SurplusLossRatio = -math.Expm1(gain)
	} else {
		scaling.SurplusLossRatio = 1
	}
	return scaling
}
