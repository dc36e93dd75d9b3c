package fit

import "time"

// Thresholds and parameters, chosen on the simulations of courier simulate figures nearchus.
const (
	// trustedErrorRatio is the standard error from which a trusted model may choose a distant shape.
	trustedErrorRatio = 0.1
	// boundFactor is the number of standard errors of the lower bound of a gain, one-sided 75 %. A
	// move that disappoints can be undone, so that it need not be almost certain. deadlineFactor is
	// that of the bounds with which a job must keep its deadline, and a move is undone: one-sided
	// 90 %.
	boundFactor    = 0.67
	deadlineFactor = 1.28
	// lateRatio is the ratio by which a job that gives up cores may exceed its time in the requested
	// shape, lateFactor the number of standard errors of the bound for that: one-sided 99 %.
	lateRatio  = 0.03
	lateFactor = 2.33

	// growthGainRatio is the speed that cores must gain, per relative growth in cores,
	// exchangeGainRatio the gain that an exchange must reach, and costFactor how often the saved time
	// must pay back the pause of a move.
	growthGainRatio   = 0.05
	exchangeGainRatio = 0.01
	costFactor        = 2
	// fruitlessMoves without gain make a job rest for restTime. A shape that was undone is barred for
	// barredTime.
	fruitlessMoves = 2
	restTime       = 300 * time.Second
	barredTime     = 10 * time.Minute
)
