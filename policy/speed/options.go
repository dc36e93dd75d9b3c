package speed

// Thresholds and parameters. "DLRover" marks values that its optimizer ships
// (github.com/intelligent-machine-learning/dlrover, Apache License 2.0); the others were chosen on the
// simulations of courier simulate figures nearchus.
const (
	// A window is judged with MinReports reports in one shape whose step times have at most the
	// coefficient of variation maxVariation.
	MinReports   = 3
	maxVariation = 0.1

	// Bottlenecks.
	memoryPressureThreshold = 0.1  // of the time stalled
	ioWaitThreshold         = 0.15 // of the CPU time of the job, or of the node
	ioPressureThreshold     = 0.2  // of the time stalled
	inputWaitThreshold      = 0.2  // of the time, in which the training waits for batches
	CPUThreshold            = 0.85 // of the granted CPUs; DLRover's "overloaded"
	contentionThreshold     = 0.3  // of the time, in which a process waits for a CPU
	demandThreshold         = 0.6  // of the granted CPUs, used or waited for, with contention
	// UnknownPressure shows neither contention nor a surplus.
	UnknownPressure = 0.2
	// StarvedCPUThreshold is the CPU use up to which a job that waits for its memory or storage gets no
	// more CPUs.
	StarvedCPUThreshold = 0.6
	// surplusCPUThreshold is the use of the granted CPUs, with the time in which a process waits for one,
	// up to which a job is idle. It may lose some if hardly any process waits, and that costs at most
	// surplusLossThreshold of its speed.
	surplusCPUThreshold      = 0.4
	surplusPressureThreshold = 0.1
	surplusLossThreshold     = 0.02

	// decay is the weight of a shape in the speed model for each later shape.
	decay = 0.9
	// NoiseRatio is the standard deviation of the step time of one report that is assumed until the
	// job has shown its own. telemetryNoiseRatio is that of CPU and link use.
	NoiseRatio          = 0.05
	telemetryNoiseRatio = 0.1
	// trustedShapes is the number of shapes from which a model counts as trusted.
	trustedShapes = 4
)
