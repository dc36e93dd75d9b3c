package fit

import "time"

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
	// noiseRatio is the standard deviation of the step time of one report that is assumed until the
	// job has shown its own. telemetryNoiseRatio is that of CPU and link use.
	noiseRatio          = 0.05
	telemetryNoiseRatio = 0.1
	// trustedShapes is the number of shapes, and trustedErrorRatio the standard error, from which the
	// model may choose a distant shape.
	trustedShapes     = 4
	trustedErrorRatio = 0.1
	// BoundFactor is the number of standard errors of the lower bound of a gain, one-sided 75 %. A
	// move that disappoints can be undone, so that it need not be almost certain. deadlineFactor is
	// that of the bounds with which a job must keep its deadline, and a move is undone: one-sided
	// 90 %.
	BoundFactor    = 0.67
	deadlineFactor = 1.28
	// lateRatio is the ratio by which a job that gives up cores may exceed its time in the requested
	// shape, lateFactor the number of standard errors of the bound for that: one-sided 99 %.
	lateRatio  = 0.03
	lateFactor = 2.33

	// GrowthGainRatio is the speed that cores must gain, per relative growth in cores,
	// exchangeGainRatio the gain that an exchange must reach, and costFactor how often the saved time
	// must pay back the pause of a move.
	GrowthGainRatio   = 0.05
	exchangeGainRatio = 0.01
	costFactor        = 2
	// fruitlessMoves without gain make a job rest for restTime. A shape that was undone is barred for
	// barredTime.
	fruitlessMoves = 2
	restTime       = 300 * time.Second
	barredTime     = 10 * time.Minute
)
