package advisor

import (
	"math"
	"sort"

	"courier/regress/evidence"
	"courier/schemas"
)

// outlook is the distribution of the time that a job takes from now on: its
// median, times what was seen to come out otherwise. Two tables of log residuals
// hold that: the regressor's, of epochs that it had not seen, and the record's,
// of whole jobs. The record's count fully, the regressor's fill up what is
// missing to a window.
type outlook struct {
	seconds        float64   // the median: that of the forecast
	table          []float64 // log residuals of the regressor, sorted
	narrowing      float64   // by how much the job's own epochs narrow them; 1: not at all
	isExtrapolated bool      // beyond the examples: nothing can be promised
	recalibration  *Recalibration
	shift          float64 // of the residuals, for its kind of job
	uncertainty
}

// share returns the share of residuals of at most x; 0 where there are none.
func (o *outlook) share(x float64) float64 {
	x -= o.shift
	if o.scale > 0 {
		return evidence.Distribution{Scale: o.scale, Degrees: o.degrees}.Probability(math.Exp(x))
	}
	own, n := o.recalibration.rank(x)
	all := float64(own)
	fill := o.fill(n)
	if fill > 0 {
		all += fill * float64(rankIn(o.table, x)) / float64(len(o.table))
	}
	return all / (float64(n) + fill + 1)
}

// fill is how many residuals the regressor's table stands for beside n own ones.
func (o *outlook) fill(n int) float64 { return float64(min(len(o.table), recalibrationWindow-n)) }

// rankIn is how many entries of a sorted table are at most x.
func rankIn(table []float64, x float64) int {
	return sort.Search(len(table), func(i int) bool { return table[i] > x })
}

// probability returns how likely the job ends within some seconds; ok is false
// where nothing can be promised.
func (o *outlook) probability(within, confidence float64) (p float64, ok bool) {
	if within > 0 {
		p = o.recalibration.calibrated(o.share(math.Log(within/o.seconds)/o.narrowing), confidence)
	}
	if within < o.seconds { // whatever the record says: it is less than the prediction
		p = min(p, 0.5)
	}
	return p, !o.isExtrapolated && (o.scale > 0 || len(o.table) > 0)
}

// bound returns the seconds that the job stays within with a confidence; ok is
// false where that cannot be promised. It is the probability read the other way:
// the smallest residual of either table that reaches the level.
func (o *outlook) bound(confidence float64) (float64, bool) {
	if o.isExtrapolated {
		return 0, false
	}
	level := 1 - o.recalibration.missRate(confidence)
	if o.scale > 0 {
		d := evidence.Distribution{Location: o.shift, Scale: o.scale, Degrees: o.degrees}
		return o.seconds * max(1, d.Quantile(level)), true
	}
	least := math.Inf(1)
	for _, table := range [...][]float64{o.recalibration.table(), o.table} {
		i := o.first(table, level)
		if i < len(table) {
			least = min(least, table[i])
		}
	}
	if math.IsInf(least, 1) {
		return 0, false
	}
	return o.seconds * math.Exp((o.shift+least)*o.narrowing), true
}

// first is the first entry of a table whose share reaches a level. Where the
// regressor's is the only table, an entry's share is its rank.
func (o *outlook) first(table []float64, level float64) int {
	if len(table) > 0 && len(o.recalibration.table()) == 0 {
		fill := o.fill(0)
		return max(0, int(math.Ceil(level*(fill+1)/fill*float64(len(table))-1e-9))-1)
	}
	return sort.Search(len(table), func(i int) bool { return o.share(o.shift+table[i]) >= level })
}

// uncertainty is the spread of a forecast: of the logarithm of the time that is left.
type uncertainty struct {
	scale, degrees float64 // of a Student-t distribution; scale 0: tables say it
}

// spread returns the uncertainty of a job's fate: that of its epochs, weighted by their share of
// the time, and that of its start-up.
func (j *jobForecast) spread(startup evidence.Distribution, epochs float64) uncertainty {
	e := &j.leastCertain
	if !e.Known() || !(j.end > 0) {
		return uncertainty{}
	}
	variance := e.Variance*j.left + e.Noise/max(epochs, 1)
	if j.plannedStartup > 0 && startup.Scale > 0 {
		share := min(1, j.plannedStartup/j.end)
		variance = (1-share)*(1-share)*variance + share*share*startup.Scale*startup.Scale
	}
	return uncertainty{math.Sqrt(variance), e.Degrees}
}

// wider reports whether an estimate is less certain than another.
func lessCertain(a, b *evidence.EpochTime) bool {
	if !a.Known() || !b.Known() {
		return a.Known()
	}
	if a.Support != b.Support {
		return a.Support < b.Support
	}
	return a.Variance > b.Variance
}

// own is how much longer the epochs of a running job take than predicted, by how much they narrow
// the tables of residuals, and the share of the variance of its run that they leave.
func (m *Member) own(r *Regressor, code float64, said *predictionCache) (factor, narrow, left float64) {
	if r.evidence != nil {
		factor, left = m.ownEvidence(r, code)
		return factor, 1, left
	}
	factor, narrow = m.ownFactor(r, code, said)
	return factor, narrow, 1
}

// ownFactor is how much longer a run's epochs take than predicted, and by how
// much they narrow what is uncertain about it. With n epochs the mean of their
// log ratios, each to the batch size that it ran with, is shrunk by n/(n+1): as much of the error is taken to belong to
// the run as to each epoch.
func (m *Member) ownFactor(r *Regressor, code float64, said *predictionCache) (factor, narrow float64) {
	sum, n := 0.0, 0.0
	var on nodeCodeCache
	for i := range m.observedEpochs {
		l := &m.observedEpochs[i]
		f := schemas.Features{
			BatchSize: l.batch,
			CPUs:      m.Setting.CPUs,
			ModelCode: code,
			Load:      l.load.Load,
			Node:      on.node(r, l.load.on),
		}
		if p, ok := r.predict(&f, said); ok && p.Value > 0 && l.seconds > 0 {
			sum += math.Log(l.seconds / p.Value)
			n++
		}
	}
	if n == 0 {
		return 1, 1
	}
	return math.Exp(sum / (n + 1)), max(minNarrowing, 1/math.Sqrt(n+1))
}

// leastNarrow is what own epochs leave of the uncertainty: jobs that come later
// slow down a job whose epochs are well known, too.
const minNarrowing = 0.5

// ownEvidence is how much longer the epochs of a running job take than predicted, and the share
// of the variance of its expectation and its run that is left. Its n epochs correct the prediction
// as a conjugate normal update: by n v / (n v + s), with the variance v of the run and s of an
// epoch.
func (m *Member) ownEvidence(r *Regressor, code float64) (factor, left float64) {
	var sum, n, variance, noise float64
	for i := range m.observedEpochs {
		l := &m.observedEpochs[i]
		nodeType := r.evidence.NodeType(l.node, l.load.on.NodeType())
		e := r.epochTime(code, l.batch, m.Setting.CPUs, l.load.Load, l.load.on.Cores, nodeType)
		if !e.Known() || l.seconds <= 0 {
			continue
		}
		sum += math.Log(l.seconds) - e.Location
		variance, noise = max(variance, e.Variance), e.Noise
		n++
	}
	if n == 0 || variance == 0 {
		return 1, 1
	}
	weight := n * variance / (n*variance + noise)
	return math.Exp(weight * sum / n), 1 - weight
}
