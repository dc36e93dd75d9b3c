package fit

import (
	"cmp"
	"time"
)

// Options are the thresholds and parameters. A zero field means the documented default. "DLRover"
// marks values that its optimizer ships (github.com/intelligent-machine-learning/dlrover, Apache
// License 2.0); the others are choices of the design page resource-policies, section 3.
type Options struct {
	// A window is judged with MinReports reports in one shape whose step times have at most the
	// coefficient of variation MaxVariation. Defaults: 3 and 0.1.
	MinReports   int
	MaxVariation float64

	// MemoryRatio of the limit, or MemoryPressureRatio of stalled time. Defaults: 0.9, 0.1.
	MemoryRatio         float64
	MemoryPressureRatio float64
	// StragglerRatio is the largest divided by the median step time of the workers. Default: 1.3.
	StragglerRatio float64
	// IOWaitRatio of the node, or IOPressureRatio of stalled time. Defaults: 0.15, 0.2.
	IOWaitRatio     float64
	IOPressureRatio float64
	// LinkRatio is the use of the link. Default: 0.8 (DLRover's "hot").
	LinkRatio float64
	// StarvedCPURatio is the CPU use up to which steps that take longer with more workers show a
	// slow network. Default: 0.6.
	StarvedCPURatio float64
	// CPURatio is the use of the granted CPU of a worker or server. Default: 0.85 (DLRover's
	// "overloaded"). ExhaustedCPURatio of a server also suggests a worker less. Default: 0.99
	// (DLRover's "exhausted").
	CPURatio          float64
	ExhaustedCPURatio float64
	// WorkerGainRatio is the gain of the last worker, relative to a proportional one, from which
	// more workers may help. Default: 0.2 (DLRover's least speed of an added worker).
	WorkerGainRatio float64
	// SurplusCPURatio is the use of the granted CPU below which a job may lose resources if that
	// costs at most SurplusLossRatio of its speed. Defaults: 0.4, 0.02.
	SurplusCPURatio  float64
	SurplusLossRatio float64

	// Decay is the weight of a shape in the speed model for each later shape. Default: 0.9.
	Decay float64
	// NoiseRatio is the standard deviation of the step time of one report that is assumed until the
	// job has shown its own. TelemetryNoiseRatio is that of CPU and link use. Defaults: 0.05, 0.1.
	NoiseRatio          float64
	TelemetryNoiseRatio float64
	// TrustedShapes is the number of shapes, and TrustedErrorRatio the standard error, from which
	// the model may choose a distant shape. Defaults: 4, 0.1.
	TrustedShapes     int
	TrustedErrorRatio float64
	// BoundFactor is the number of standard errors of the lower bound of a gain. A move that
	// disappoints can be undone, so that it need not be almost certain. Default: 0.67, one-sided
	// 75 %. DeadlineFactor is that of the bounds with which a job must keep its deadline, and a move
	// is undone. Default: 1.28, one-sided 90 %.
	BoundFactor    float64
	DeadlineFactor float64
	// LateRatio is the ratio by which a job that gives up cores may exceed its time in the requested
	// shape. LateFactor is the number of standard errors of the bound for that. Defaults: 0.03, and
	// 2.33, one-sided 99 %.
	LateRatio  float64
	LateFactor float64

	// GrowthGainRatio is the speed that cores must gain, per relative growth in cores. Default:
	// 0.05. ExchangeGainRatio is the gain that an exchange must reach. Default: 0.01.
	GrowthGainRatio   float64
	ExchangeGainRatio float64
	// CostFactor is how often the saved time must pay back the pause of a move. Default: 2.
	CostFactor float64
	// FruitlessMoves without gain make a job rest for Rest. Defaults: 2, 300 s. A shape that was
	// undone is barred for Barred. Default: 10 minutes.
	FruitlessMoves int
	Rest           time.Duration
	Barred         time.Duration
	// Largest bounds each number of a shape. Default: 16 workers of 16 cores, 8 servers of 8 cores.
	Largest Shape
}

// WithDefaults returns the options with the default of each zero field.
func (o Options) WithDefaults() Options {
	o.MinReports = cmp.Or(o.MinReports, 3)
	o.MaxVariation = cmp.Or(o.MaxVariation, 0.1)
	o.MemoryRatio = cmp.Or(o.MemoryRatio, 0.9)
	o.MemoryPressureRatio = cmp.Or(o.MemoryPressureRatio, 0.1)
	o.StragglerRatio = cmp.Or(o.StragglerRatio, 1.3)
	o.IOWaitRatio = cmp.Or(o.IOWaitRatio, 0.15)
	o.IOPressureRatio = cmp.Or(o.IOPressureRatio, 0.2)
	o.LinkRatio = cmp.Or(o.LinkRatio, 0.8)
	o.StarvedCPURatio = cmp.Or(o.StarvedCPURatio, 0.6)
	o.CPURatio = cmp.Or(o.CPURatio, 0.85)
	o.ExhaustedCPURatio = cmp.Or(o.ExhaustedCPURatio, 0.99)
	o.WorkerGainRatio = cmp.Or(o.WorkerGainRatio, 0.2)
	o.SurplusCPURatio = cmp.Or(o.SurplusCPURatio, 0.4)
	o.SurplusLossRatio = cmp.Or(o.SurplusLossRatio, 0.02)
	o.Decay = cmp.Or(o.Decay, 0.9)
	o.NoiseRatio = cmp.Or(o.NoiseRatio, 0.05)
	o.TelemetryNoiseRatio = cmp.Or(o.TelemetryNoiseRatio, 0.1)
	o.TrustedShapes = cmp.Or(o.TrustedShapes, 4)
	o.TrustedErrorRatio = cmp.Or(o.TrustedErrorRatio, 0.1)
	o.BoundFactor = cmp.Or(o.BoundFactor, 0.67)
	o.DeadlineFactor = cmp.Or(o.DeadlineFactor, 1.28)
	o.LateRatio = cmp.Or(o.LateRatio, 0.03)
	o.LateFactor = cmp.Or(o.LateFactor, 2.33)
	o.GrowthGainRatio = cmp.Or(o.GrowthGainRatio, 0.05)
	o.ExchangeGainRatio = cmp.Or(o.ExchangeGainRatio, 0.01)
	o.CostFactor = cmp.Or(o.CostFactor, 2)
	o.FruitlessMoves = cmp.Or(o.FruitlessMoves, 2)
	o.Rest = cmp.Or(o.Rest, 300*time.Second)
	o.Barred = cmp.Or(o.Barred, 10*time.Minute)
	if o.Largest == (Shape{}) {
		o.Largest = Shape{Workers: 16, WorkerCores: 16, Servers: 8, ServerCores: 8}
	}
	return o
}
