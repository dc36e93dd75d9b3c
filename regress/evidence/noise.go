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

	priorSlopeDeviation   = 0.01 // of a run against its curve, in the log of the epochs
	unknownSlopeDeviation = 0.05 // if no configuration has two long runs
	maxNoiseRuns          = 20   // of a configuration
	maxNoiseEpochs        = 2000 // of a run
)

// noiseSums collect the variances within the runs of a subject.
type noiseSums struct {
	epochs, slopes   []spread
	product, squares float64 // of neighbouring residuals, and of residuals
}

// fitNoise estimates the variances within the runs of a subject about its curves.
func (t *TimeModel) fitNoise(all []*measuredTimes) {
	sums := noiseSums{product: priorCorrelated * epochCorrelation * correlatedWeight,
		squares: correlatedWeight}
	for i, m := range all {
		c := newCompiledCurve(&t.Configurations[i], t.PaceVariance)
		for _, r := range m.curves[:min(len(m.curves), maxNoiseRuns)] {
			if s, ok := sums.add(c, &r); ok {
				c.EpochSquares += s.squares
				c.EpochFreedom += s.freedom
			}
		}
	}
	const weight, maxRuns = 3, 200
	t.EpochVariance = pool(sums.epochs[:min(len(sums.epochs), maxRuns)], weight,
		priorEpochDeviation*priorEpochDeviation, 2, 8)
	t.CorrelatedShare = max(.05, min(.95, sums.product/sums.squares/epochCorrelation))
	t.SlopeVariance = unknownSlopeDeviation * unknownSlopeDeviation
	if len(sums.slopes) > 0 {
		t.SlopeVariance = pool(sums.slopes[:min(len(sums.slopes), maxRuns)], weight,
			priorSlopeDeviation*priorSlopeDeviation, 3, 1)
	}
}

// add adds the residuals of a run against the curve of its configuration, from its second epoch on.
func (n *noiseSums) add(c *compiledCurve, r *runCurve) (s spread, ok bool) {
	const fewest = 4
	epochs := min(r.epochs(), maxNoiseEpochs)
	if epochs < fewest {
		return s, false
	}
	logs, y := make([]float64, 0, epochs), make([]float64, 0, epochs)
	for i := 2; i <= epochs; i++ {
		log := math.Log(r.sums[i-1] - r.sums[i-2])
		logs = append(logs, log)
		y = append(y, log-math.Log(c.total(i)-c.total(i-1)))
	}
	residuals := clippedResiduals(y)
	s = spread{sumOfSquares(residuals), float64(epochs) - 2}
	if c.Runs == 1 { // the curve is this run: only differences of neighbours tell its noise
		for i := range logs[1:] {
			logs[i] = logs[i+1] - logs[i]
		}
		d := max(.5, (float64(epochs)-3)/1.5)
		s = spread{sumOfSquares(clippedAbout(logs[:len(logs)-1], 0)) / 2 * d / (float64(epochs) - 2), d}
	} else { // the run is a part of its own curve
		s.freedom *= 1 - 1/float64(c.Runs)
	}
	if s.squares == 0 {
		return s, false
	}
	n.epochs = append(n.epochs, s)
	if c.Runs > 1 {
		n.correlate(residuals)
		n.slope(residuals, s, c.Runs)
	}
	return s, true
}

// correlate adds the correlation of neighbouring residuals, as of at most 50 epochs of variance 1.
func (n *noiseSums) correlate(residuals []float64) {
	squares := sumOfSquares(residuals)
	count := float64(len(residuals))
	weight := min(1, 50/(count+1)) / (squares/count + 1e-12)
	n.product += weight * floats.Dot(residuals[1:], residuals[:len(residuals)-1])
	n.squares += weight * squares
}

// slope adds the squared slope of a run without the part that its noise explains.
func (n *noiseSums) slope(residuals []float64, s spread, runs int) {
	const fewest = 6
	if len(residuals) < fewest {
		return
	}
	x := make([]float64, len(residuals))
	for i := range x {
		x[i] = math.Log(float64(i + 2))
	}
	x = centered(x)
	square := sumOfSquares(x)
	slope := floats.Dot(x, residuals) / square
	noise := s.squares / float64(len(residuals)) * (1 + 2*priorCorrelated) / square
	share := float64(runs) / float64(runs-1)
	n.slopes = append(n.slopes, spread{max(slope*slope-noise, 0) * share, 1})
}

// clippedResiduals limits values to four deviations about their median, and subtracts their mean.
func clippedResiduals(values []float64) []float64 {
	return centered(clippedAbout(values, median(values)))
}

// clippedAbout returns the differences to a centre, limited to four deviations by their median.
func clippedAbout(values []float64, centre float64) []float64 {
	const most, normal, least = 4, 1.4826, 1e-4
	left, sizes := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		left[i] = v - centre
		sizes[i] = math.Abs(left[i])
	}
	limit := most * (normal*median(sizes) + least)
	for i, v := range left {
		left[i] = max(-limit, min(limit, v))
	}
	return left
}

func centered(values []float64) []float64 {
	mean, all := 0.0, make([]float64, len(values))
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for i, v := range values {
		all[i] = v - mean
	}
	return all
}

func sumOfSquares(values []float64) float64 { return floats.Dot(values, values) }

// epochNoise returns the variance of an epoch of a configuration: the independent part, and the
// correlated one. c may be nil.
func (t *TimeModel) epochNoise(c *ConfigurationTimes) (white, correlated float64) {
	v := t.EpochVariance
	if c != nil && c.EpochFreedom > 0 {
		d := min(c.EpochFreedom, maxEpochFreedom)
		v = (epochWeight*v + c.EpochSquares*d/c.EpochFreedom) / (epochWeight + d)
	}
	return v * (1 - t.CorrelatedShare), v * t.CorrelatedShare
}
