package advisor

import (
	"math"
	"sort"

	"courier/regress/evidence"
	"courier/schemas"
)

// outlook is the distribution of the remaining time of a job: the median of the forecast times a
// residual. An evidence regressor supplies a Student-t distribution of residuals. For any other
// regressor the residuals come from two sorted tables of logarithms. The table of the regressor
// holds residuals of held-out epochs; the table of the recalibration holds residuals of whole jobs.
// Each residual of the recalibration has weight 1. The table of the regressor has the rest of
// recalibrationWindow as its weight.
type outlook struct {
	seconds        float64   // the median
	table          []float64 // log residuals of the regressor, sorted
	narrowing      float64   // of the residuals by the job's own epochs; 1 without any
	isExtrapolated bool      // outside the support: nothing can be promised
	recalibration  *Recalibration
	shift          float64 // mean residual of its kind of job
	uncertainty
}

// share returns the share of residuals that are at most x; 0 without residuals.
func (o *outlook) share(x float64) float64 {
	x -= o.shift
	if o.scale > 0 {
		return evidence.Distribution{Scale: o.scale, Degrees: o.degrees}.Probability(math.Exp(x))
	}
	own, n := o.recalibration.rank(x)
	all := float64(own)
	fill := o.regressorWeight(n)
	if fill > 0 {
		all += fill * float64(rankIn(o.table, x)) / float64(len(o.table))
	}
	return all / (float64(n) + fill + 1)
}

// regressorWeight returns the weight of the regressor's table if the recalibration has n residuals.
func (o *outlook) regressorWeight(n int) float64 {
	return float64(min(len(o.table), recalibrationWindow-n))
}

// rankIn returns the number of entries of a sorted table that are at most x.
func rankIn(table []float64, x float64) int {
	return sort.Search(len(table), func(i int) bool { return table[i] > x })
}

// probability returns the probability that the job ends within some seconds. ok is false if nothing
// can be promised.
func (o *outlook) probability(within, confidence float64) (p float64, ok bool) {
	if within > 0 {
		p = o.recalibration.calibrated(o.share(math.Log(within/o.seconds)/o.narrowing), confidence)
	}
	if within < o.seconds { // less than the median
		p = min(p, 0.5)
	}
	p = min(p, maxProbability)
	return p, !o.isExtrapolated && (o.scale > 0 || len(o.table) > 0)
}

// maxProbability bounds the probability of a time that is still to come. A Student-t distribution
// rounds to 1 far above its median, but no job is certain to end: nodes fail.
const maxProbability = 0.9999

// bound returns the upper bound of the time with a confidence; ok is false if it cannot be
// promised, or if the confidence is above any probability. It inverts probability: it uses the
// smallest residual of either table that reaches the level.
func (o *outlook) bound(confidence float64) (float64, bool) {
	if o.isExtrapolated || confidence > maxProbability {
		return 0, false
	}
	level := 1 - o.recalibration.missRate(confidence)
	if o.scale > 0 {
		d := evidence.Distribution{Location: o.shift, Scale: o.scale, Degrees: o.degrees}
		return o.seconds * max(1, d.Quantile(level)), true
	}
	lowest := math.Inf(1)
	for _, table := range [...][]float64{o.recalibration.table(), o.table} {
		i := o.first(table, level)
		if i < len(table) {
			lowest = min(lowest, table[i])
		}
	}
	if math.IsInf(lowest, 1) {
		return 0, false
	}
	return o.seconds * math.Exp((o.shift+lowest)*o.narrowing), true
}

// first returns the index of the first entry of a table whose share reaches a level. Without
// residuals of the recalibration, the share of an entry is its rank.
func (o *outlook) first(table []float64, level float64) int {
	if len(table) > 0 && len(o.recalibration.table()) == 0 {
		fill := o.regressorWeight(0)
		return max(0, int(math.Ceil(level*(fill+1)/fill*float64(len(table))-1e-9))-1)
	}
	return sort.Search(len(table), func(i int) bool { return o.share(o.shift+table[i]) >= level })
}

// uncertainty is the spread of a forecast: of the logarithm of the remaining time.
type uncertainty struct {
	scale, degrees float64 // of a Student-t distribution; with scale 0 the tables apply
}

// spread returns the uncertainty of the job's remaining time. It weights the uncertainties of the
// epochs and of the start-up by their shares of the time.
func (j *jobForecast) spread(startup evidence.Distribution, epochs float64) uncertainty {
	e := &j.leastCertain
	if !e.Known() || !(j.end > 0) {
		return uncertainty{}
	}
	variance := e.Variance*j.varianceLeft + e.Noise/max(epochs, 1)
	if j.plannedStartup > 0 && startup.Scale > 0 {
		share := min(1, j.plannedStartup/j.end)
		variance = (1-share)*(1-share)*variance + share*share*startup.Scale*startup.Scale
	}
	return uncertainty{math.Sqrt(variance), e.Degrees}
}

// lessCertain reports whether a prediction is less certain than another.
func lessCertain(a, b *evidence.EpochTime) bool {
	if !a.Known() || !b.Known() {
		return a.Known()
	}
	if a.Support != b.Support {
		return a.Support < b.Support
	}
	return a.Variance > b.Variance
}

// compareEpochs compares the observed epochs of a running job with their predictions. It returns
// the factor between them, the narrowing of the residuals, and the share of the run's variance that
// is left.
func (m *Member) compareEpochs(
	r *LoadedRegressor, code float64, cache *predictionCache,
) (factor, narrowing, varianceLeft float64) {
	if r.evidence != nil {
		factor, varianceLeft = m.ownEvidence(r, code)
		return factor, 1, varianceLeft
	}
	factor, narrowing = m.ownFactor(r, code, cache)
	return factor, narrowing, 1
}

// ownFactor returns the factor between the observed and the predicted epochs of a run, and the
// narrowing of the uncertainty. The mean log ratio of n epochs is shrunk by n/(n+1): the run is
// assumed to cause as much of the error as each epoch.
func (m *Member) ownFactor(
	r *LoadedRegressor, code float64, cache *predictionCache,
) (factor, narrowing float64) {
	sum, n := 0.0, 0.0
	var on nodeCodeCache
	for i := range m.ObservedEpochs {
		l := &m.ObservedEpochs[i]
		f := schemas.Features{
			BatchSize: l.BatchSize,
			CPUs:      l.CPUs,
			ModelCode: code,
			Load:      l.Load.Load,
			Node:      on.node(r, l.Load.On),
		}
		if p, ok := r.predict(&f, cache); ok && p.Value > 0 && l.Seconds > 0 {
			sum += math.Log(l.Seconds / p.Value)
			n++
		}
	}
	if n == 0 {
		return 1, 1
	}
	return math.Exp(sum / (n + 1)), max(minNarrowing, 1/math.Sqrt(n+1))
}

// minNarrowing bounds the narrowing by own epochs, because jobs that start later also slow down a
// job whose epochs are well known.
const minNarrowing = 0.5

// ownEvidence returns the factor between the observed and the predicted epochs of a running job,
// and the share of the run's variance that is left. n epochs correct the prediction as a conjugate
// normal update by n v / (n v + s), with the variance v of the run and the noise s of an epoch.
func (m *Member) ownEvidence(r *LoadedRegressor, code float64) (factor, left float64) {
	var sum, n, variance, noise float64
	for i := range m.ObservedEpochs {
		l := &m.ObservedEpochs[i]
		nodeType := r.evidence.NodeType(l.Node, l.Load.On.NodeType())
		e := r.epochTime(code, l.BatchSize, l.CPUs, l.Load.Load, l.Load.On.Cores, nodeType)
		if !e.Known() || l.Seconds <= 0 {
			continue
		}
		sum += math.Log(l.Seconds) - e.Location
		variance, noise = max(variance, e.Variance), e.Noise
		n++
	}
	if n == 0 || variance == 0 {
		return 1, 1
	}
	weight := n * variance / (n*variance + noise)
	return math.Exp(weight * sum / n), 1 - weight
}
