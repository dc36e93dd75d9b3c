package evidence

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// The variances within runs: deviations of logarithms, and weights in degrees of freedom.
const (
	priorEpochDeviation = 0.03
	epochWeight         = 4.0  // of the variance of a model for one of its configurations
	maxEpochFreedom     = 50.0 // of a configuration's own squares
	priorCorrelated     = 0.3  // share of the correlated part
	correlatedWeight    = 10.0 // of that prior, in epochs
	epochCorrelation    = 0.9  // of the correlated part, per epoch

	slopeDeviation        = 0.01 // of a run against its curve, in the log of the epochs
	unknownSlopeDeviation = 0.05 // of a run without earlier runs
	maxNoiseRuns          = 20   // of a configuration
	maxNoiseEpochs        = 2000 // of a run
)

// fitNoise estimates the variances within the runs of a subject about its curves.
func (t *TimeModel) fitNoise(all []*measuredTimes) {
	const weight, priorWeight, maxRuns, most = 3, 2, 200, 8
	var runs []spread
	squares := correlatedWeight
	product := priorCorrelated * epochCorrelation * squares // of neighbouring residuals
	for i, m := range all {
		c := newCompiledCurve(&t.Configurations[i], t.PaceVariance)
		var odd []float64
		for _, r := range m.curves[:min(len(m.curves), maxNoiseRuns)] {
			residuals, more, s := c.noise(&r)
			odd = append(odd, more)
			if s.squares == 0 {
				continue
			}
			runs = append(runs, s)
			c.EpochSquares += s.squares
			c.EpochFreedom += s.freedom
			if n := float64(len(residuals)); n > 0 { // as at most 50 epochs of variance 1
				weight := min(1, 50/(n+1)) * n / (s.squares + 1e-12)
				product += weight * floats.Dot(residuals[1:], residuals[:len(residuals)-1])
				squares += weight * s.squares
			}
		}
		c.OddVariance = Median(odd)
	}
	t.EpochVariance = pool(runs[:min(len(runs), maxRuns)], weight,
		priorEpochDeviation*priorEpochDeviation, priorWeight, most)
	t.CorrelatedShare = max(.05, min(.95, product/squares/epochCorrelation))
}

// noise returns the squares of the epochs of a run about the curve of its configuration, from its second
// epoch on; none of a short run. The residuals are nil if the run is the only one of its curve. odd is
// the mean square of what the squares leave out: by how much odd epochs, such as stalls, are longer.
func (c *compiledCurve) noise(r *runCurve) (residuals []float64, odd float64, s spread) {
	const fewest = 4
	epochs := min(r.epochs(), maxNoiseEpochs)
	if epochs < fewest {
		return nil, 0, s
	}
	logs, y := make([]float64, 0, epochs), make([]float64, 0, epochs)
	for i := 2; i <= epochs; i++ {
		log := math.Log(r.sums[i-1] - r.sums[i-2])
		logs = append(logs, log)
		y = append(y, log-math.Log(max(c.total(i)-c.total(i-1), minSeconds)))
	}
	if c.Runs > 1 { // the run is a part of its own curve
		usual := Median(y)
		limited := clippedAbout(y, usual)
		for i := range y {
			more := math.Exp(min(y[i], maxPace)) - math.Exp(min(usual+limited[i], maxPace))
			odd += max(0, more) * more / float64(len(y))
		}
		residuals = centered(limited)
		return residuals, odd, spread{sumOfSquares(residuals), (float64(epochs) - 2) * (1 - 1/float64(c.Runs))}
	}
	for i := range logs[1:] { // the curve is this run: only differences of neighbours show its noise
		logs[i] = logs[i+1] - logs[i]
	}
	d := max(.5, (float64(epochs)-3)/1.5)
	return nil, 0, spread{sumOfSquares(clippedAbout(logs[:len(logs)-1], 0)) / 2 * d / (float64(epochs) - 2), d}
}

// clippedAbout returns the differences to a centre, limited to four deviations by their median.
func clippedAbout(values []float64, centre float64) []float64 {
	const most, normal, least = 4, 1.4826, 1e-4
	left, sizes := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		left[i] = v - centre
		sizes[i] = math.Abs(left[i])
	}
	limit := most * (normal*Median(sizes) + least)
	for i, v := range left {
		left[i] = max(-limit, min(limit, v))
	}
	return left
}

// meanCorrelated returns the variance of the mean of the correlated noise of some epochs.
func meanCorrelated(correlated float64, epochs int) float64 {
	if n := float64(epochs); n <= 2*horizon {
		return correlated * min(1, horizon/n+.3)
	}
	return correlated * (1 + epochCorrelation) / (1 - epochCorrelation) / float64(epochs)
}

// epochNoise returns the variance of an epoch of a configuration: the independent part, and the
// correlated one.
func (t *TimeModel) epochNoise(c *ConfigurationTimes) (white, correlated float64) {
	v := t.EpochVariance
	if c.EpochFreedom > 0 {
		d := min(c.EpochFreedom, maxEpochFreedom)
		v = (epochWeight*v + c.EpochSquares*d/c.EpochFreedom) / (epochWeight + d)
	}
	return v * (1 - t.CorrelatedShare), v * t.CorrelatedShare
}
