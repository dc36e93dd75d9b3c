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
	memoryThreshold         = 0.9  // of the limit
	memoryPressureThreshold = 0.1  // of the time stalled
	stragglerThreshold      = 1.3  // largest divided by the median step time of the workers
	ioWaitThreshold         = 0.15 // of the node
	ioPressureThreshold     = 0.2  // of the time stalled
	linkThreshold           = 0.8  // of the link; DLRover's "hot"
	CPUThreshold            = 0.85 // of the granted CPU of a worker or server; DLRover's "overloaded"
	exhaustedCPUThreshold   = 0.99 // of a server, which suggests a worker less; DLRover's "exhausted"
	// StarvedCPUThreshold is the CPU use up to which steps that take longer with more workers show a
	// slow network.
	StarvedCPUThreshold = 0.6
	// workerGainThreshold is the gain of the last worker, relative to a proportional one, from which
	// more workers may help (DLRover's least speed of an added worker).
	workerGainThreshold = 0.2
	// surplusCPUThreshold is the use of the granted CPU below which a job may lose resources if that
	// costs at most surplusLossThreshold of its speed.
	surplusCPUThreshold  = 0.4
	surplusLossThreshold = 0.02

	// decay is the weight of a shape in the speed model for each later shape.
	decay = 0.9
	// NoiseRatio is the standard deviation of the step time of one report that is assumed until the
	// job has shown its own. telemetryNoiseRatio is that of CPU and link use.
	NoiseRatio          = 0.05
	telemetryNoiseRatio = 0.1
	// trustedShapes is the number of shapes from which a model counts as trusted.
	trustedShapes = 4
)
