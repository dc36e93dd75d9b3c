package advisor

import (
	"math"
	"slices"

	"courier/regress/evidence"
	"courier/schemas"
)

// level is the accuracy after some epochs.
type curvePoint struct {
	epochs   uint32
	accuracy float64
}

// curve is the accuracy of an alternative over its epochs. It never falls: what
// a later epoch loses is noise, and the best epoch can be kept.
type accuracyCurve struct{ points []curvePoint }

// levelsUpTo bounds how finely a curve is looked at.
const maxCurvePoints = 64

// fill predicts the curve up to a number of epochs; with only, just its end.
func (c *accuracyCurve) fill(r *Regressor, f schemas.Features, epochs uint32, only bool, m *predictionCache) {
	c.points = c.points[:0]
	best, ratio := 0.0, stepTo(epochs)
	next := uint32(1)
	if only {
		next = epochs
	}
	for n := next; n <= epochs; n = next {
		f.EpochsDone = n
		p, ok := r.predict(&f, m)
		if !ok {
			return
		}
		if value := min(1, max(0, p.Value)); value > best || len(c.points) == 0 {
			best = value
		}
		c.points = append(c.points, curvePoint{n, best})
		if n == epochs {
			return
		}
		next = min(epochs, max(n+1, uint32(math.Ceil(float64(n)*ratio))))
	}
}

// stepTo is the ratio of neighbouring levels that reaches epochs in levelsUpTo
// steps.
func stepTo(epochs uint32) float64 {
	if epochs <= maxCurvePoints {
		return 1
	}
	return math.Pow(float64(epochs)/maxCurvePoints, 2.0/maxCurvePoints)
}

// at returns the accuracy after some epochs. More epochs than any example had
// are as good as the most: that is careful, and no promise of time needs it.
func (c *accuracyCurve) at(epochs uint32) (accuracy float64) {
	for _, l := range c.points {
		if l.epochs > epochs && accuracy > 0 {
			break
		}
		accuracy = l.accuracy
	}
	return accuracy
}

// accuracies fills the curve of the accuracy up to a number of epochs; where they
// are fixed, just its end.
func (d *decision) accuracies(batch, cpus, epochs uint32, load schemas.Load) {
	f := schemas.Features{BatchSize: batch, CPUs: cpus, ModelCode: d.codes.accuracy, Load: load}
	d.curve.fill(d.r.Accuracy, f, epochs, d.q.Request.Epochs > 0, &d.f.cache)
}

// all is how many epochs the job has left at most.
func (d *decision) maxEpochs() uint32 {
	return uint32(d.q.Request.MaxEpochs) - min(uint32(d.q.Request.MaxEpochs), d.q.epochsDone())
}

// epochs chooses how many of the epochs that are left to run where they are
// free: the fewest that reach the target, or as many as make it more accurate
// and keep the SLO.
func (d *decision) epochs(all uint32, o *outlook) uint32 {
	done, best := d.q.epochsDone(), uint32(0)
	for _, l := range d.curve.points {
		if l.epochs <= done || l.epochs > done+all {
			continue
		}
		n := l.epochs - done
		if best > 0 && d.q.Request.SLO > 0 {
			in := *o
			in.seconds = d.f.after(float64(all), float64(n))
			if p, _ := in.probability(d.q.left(), d.q.Request.Confidence); p < d.q.likelyThreshold() {
				break
			}
		}
		if before := d.curve.at(done + best); best == 0 || l.accuracy > before {
			best = n
		}
		if t := d.q.Request.TargetAccuracy; t > 0 && l.accuracy >= t {
			break
		}
	}
	return max(best, min(1, all))
}

// merit is what an alternative is ranked by, beside its figures.
type merit struct {
	mean              float64 // expected accuracy, 0 where it is not known
	sloProbability    float64 // probability of the SLO alone
	targetProbability float64 // probability of the target accuracy; 1 without a target
	maxAccuracy       float64 // accuracy that any run of the model reached
	known             bool    // its accuracy is known after so many epochs
}

// reach fills the accuracy of an alternative, and turns the probability of the SLO into that of
// the SLO and the target accuracy together. The errors of time and accuracy are taken as
// independent (product of both).
func (d *decision) reach(alt *schemas.Alternative, a *evidence.Accuracy) {
	m := merit{mean: a.Mean, sloProbability: probability(alt), targetProbability: 1, maxAccuracy: a.Highest(), known: a.Known}
	if t := d.q.Request.TargetAccuracy; t > 0 {
		m.targetProbability = promisedReach(a, t)
		alt.AccuracyProbability = d.figure(m.targetProbability)
		if alt.Probability != nil {
			alt.SLOProbability = d.figure(m.sloProbability)
			*alt.Probability = math.Round(m.sloProbability*m.targetProbability*1e6) / 1e6
		}
	}
	if a.Known {
		alt.PredictedAccuracy, alt.MeanAccuracy = d.figure(a.Median), d.figure(a.Mean)
		low, high := a.Interval(d.q.Request.Confidence)
		if alt.AccuracyUpper = d.figure(high); low > 0 {
			alt.AccuracyLower = d.figure(low)
		}
	}
	d.merits = append(d.merits, m)
}

// promisedReach is the probability of a target accuracy that may be promised: 0 for a batch size
// that no run supports.
func promisedReach(a *evidence.Accuracy, target float64) float64 {
	if !a.Support.Promisable() {
		return 0
	}
	return a.Reaches(target)
}

// surely is the probability from which on the fastest way to a target accuracy is taken and not
// the most likely one.
const nearlyCertain = 0.99

// hopelessTarget is the probability of SLO and target accuracy under which the epochs are chosen as
// if there were no target: what may come of a job then is better than nothing.
const unreachableTarget = 0.001

// freeEpochs chooses how many of the epochs that are left to run where the request leaves them
// open: with a target the fewest that reach it, within the SLO, as good as surely; else as many as
// make probability times expected accuracy largest.
func (d *decision) freeEpochs(alt *schemas.Alternative, fate *jobForecast, o *outlook) uint32 {
	all, done := alt.Epochs, d.q.epochsDone()
	target, slo := d.q.Request.TargetAccuracy, d.q.Request.SLO > 0
	startup := d.startupOf(d.codes.startup, d.hardware())
	first := min(1, all)
	best, most, accurate, accuracy := first, -1.0, first, -1.0
	for _, n := range epochGrid(all) {
		a := d.r.Accuracy.accuracyAt(d.codes.accuracy, alt.BatchSize, done+n)
		in := *o
		in.uncertainty, in.seconds = fate.spread(startup, float64(n)), d.f.after(float64(d.maxEpochs()), float64(n))
		p := 1.0
		if slo {
			p, _ = in.probability(d.q.left(), d.q.Request.Confidence)
		}
		if worth := p * a.Mean; worth > accuracy {
			accurate, accuracy = n, worth
		}
		if target == 0 {
			continue
		}
		if worth := p * promisedReach(&a, target); worth > most {
			best, most = n, worth
		}
		if most >= nearlyCertain {
			break
		}
	}
	if most < unreachableTarget {
		return accurate
	}
	return best
}

// epochGrid returns the numbers of epochs to consider up to most: all of the first, then steps of
// some per cent.
func epochGrid(most uint32) []uint32 {
	var all []uint32
	ratio := stepTo(most)
	for n := uint32(1); n <= most; n = max(n+1, uint32(math.Ceil(float64(n)*ratio))) {
		all = append(all, n)
	}
	if len(all) == 0 || all[len(all)-1] != most {
		all = append(all, most)
	}
	return slices.Compact(all)
}
