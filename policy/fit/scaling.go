package fit

import "math"

// slowerRatio is how much longer a step must take with the last worker to count as slower. Any worker
// costs some coordination, and a report has about this noise.
const slowerRatio = 0.05

// ScalingOf returns what a speed model predicts about the effect of workers and cores on a job with
// this window.
func ScalingOf(f Facts, m *SpeedModel, window []StepReport) Scaling {
	mean := meanOf(window)
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
	if surplus := surplusOf(&mean); f.allows(&surplus) {
		gain, _ := m.Gain(s, surplus)
		scaling.SurplusLossRatio = -math.Expm1(gain)
	} else {
		scaling.SurplusLossRatio = 1
	}
	return scaling
}
