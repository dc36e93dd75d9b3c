package advisor

import (
	"math"
	"slices"

	"courier/regress/evidence"
	"courier/schemas"
)

// curvePoint is the accuracy after some epochs.
type curvePoint struct {
	epochs   uint32
	accuracy float64
}

// accuracyCurve is the predicted accuracy over the epochs. It never falls, because a later loss is
// noise, and a job can keep its best epoch.
type accuracyCurve struct{ points []curvePoint }

// maxCurvePoints is the approximate number of points of a long curve.
const maxCurvePoints = 64

// fill predicts the curve up to a number of epochs. With lastOnly it predicts the last point only.
func (c *accuracyCurve) fill(
	r *LoadedRegressor, f schemas.Features, epochs uint32, lastOnly bool, m *predictionCache,
) {
	c.points = c.points[:0]
	best, ratio := 0.0, stepTo(epochs)
	next := uint32(1)
	if lastOnly {
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

// stepTo returns the ratio of neighbouring epoch numbers such that about maxCurvePoints steps lead
// to epochs.
func stepTo(epochs uint32) float64 {
	if epochs <= maxCurvePoints {
		return 1
	}
	return math.Pow(float64(epochs)/maxCurvePoints, 2.0/maxCurvePoints)
}

// at returns the accuracy after some epochs. Beyond the curve it returns the last accuracy, which
// is a cautious estimate.
func (c *accuracyCurve) at(epochs uint32) (accuracy float64) {
	for _, l := range c.points {
		if l.epochs > epochs && accuracy > 0 {
			break
		}
		accuracy = l.accuracy
	}
	return accuracy
}

// fillCurve fills the accuracy curve up to a number of epochs, or only its last point if the
// request sets the epochs.
func (d *decider) fillCurve(batch, cpus, epochs uint32, load schemas.Load) {
	f := schemas.Features{BatchSize: batch, CPUs: cpus, ModelCode: d.codes.accuracy, Load: load}
	d.curve.fill(d.r.Accuracy, f, epochs, d.q.Request.Epochs > 0, &d.f.cache)
}

// maxEpochs returns the number of epochs left until the maximum of the request.
func (d *decider) maxEpochs() uint32 {
	return uint32(d.q.Request.MaxEpochs) - min(uint32(d.q.Request.MaxEpochs), d.q.epochsDone())
}

// chooseEpochs chooses the number of remaining epochs if the request does not set it: the fewest
// that reach the target accuracy, otherwise as many as increase the accuracy within the SLO.
func (d *decider) chooseEpochs(all uint32, o *outlook) uint32 {
	done, best := d.q.epochsDone(), uint32(0)
	for _, l := range d.curve.points {
		if l.epochs <= done || l.epochs > done+all {
			continue
		}
		n := l.epochs - done
		if best > 0 && d.q.Request.SLO > 0 {
			in := *o
			in.seconds = d.f.endAfter(float64(all), float64(n))
			p, _ := in.probability(d.q.left(), d.q.Request.Confidence)
			if p < d.q.likelyThreshold() {
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

// merit holds the figures that rank an alternative but are not published with it.
type merit struct {
	mean              float64 // expected accuracy, 0 if unknown
	sloProbability    float64 // of the SLO alone
	targetProbability float64 // of the target accuracy; 1 without a target
	maxAccuracy       float64 // highest accuracy of any run of the model
	known             bool    // the accuracy after the epochs of the alternative is known
}

// applyAccuracy sets the accuracy of an alternative, and multiplies the probability of the SLO by
// the probability of the target accuracy. The errors of time and accuracy are assumed to be
// independent.
func (d *decider) applyAccuracy(alt *schemas.Alternative, a *evidence.Accuracy) {
	m := merit{
		mean:              a.Mean,
		sloProbability:    probability(alt),
		targetProbability: 1,
		maxAccuracy:       a.Highest(),
		known:             a.Known,
	}
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

// promisedReach returns the probability of the target accuracy. It is 0 if the batch size is
// outside the support, because such a batch size may not be promised.
func promisedReach(a *evidence.Accuracy, target float64) float64 {
	if !a.Support.Promisable() {
		return 0
	}
	return a.Reaches(target)
}

// nearlyCertain is the minimum probability at which the fastest alternative is preferred to the
// most likely alternative.
const nearlyCertain = 0.99

// unreachableTarget is the probability of SLO and target accuracy below which the target is
// ignored, because a job that misses the target is better than none.
const unreachableTarget = 0.001

// chooseEpochsByEvidence chooses the number of remaining epochs if the request does not set it.
// With a target accuracy it chooses the fewest epochs that reach the target within the SLO almost
// certainly. Without one it maximizes probability times expected accuracy.
func (d *decider) chooseEpochsByEvidence(
	alt *schemas.Alternative, result *jobForecast, o *outlook,
) uint32 {
	all, done := alt.Epochs, d.q.epochsDone()
	target, slo := d.q.Request.TargetAccuracy, d.q.Request.SLO > 0
	startup := d.startupOf(d.codes.startup, d.hardware())
	first := min(1, all)
	best, highest, accurate, accuracy := first, -1.0, first, -1.0
	for _, n := range epochGrid(all) {
		a := d.r.Accuracy.accuracyAt(d.codes.accuracy, alt.BatchSize, done+n)
		in := *o
		in.uncertainty = result.spread(startup, float64(n))
		in.seconds = d.f.endAfter(float64(d.maxEpochs()), float64(n))
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
		if worth := p * promisedReach(&a, target); worth > highest {
			best, highest = n, worth
		}
		if highest >= nearlyCertain {
			break
		}
	}
	if highest < unreachableTarget {
		return accurate
	}
	return best
}

// epochGrid returns the numbers of epochs to consider: every small number, then numbers up to
// highest that grow by a few percent per step.
func epochGrid(highest uint32) []uint32 {
	var all []uint32
	ratio := stepTo(highest)
	for n := uint32(1); n <= highest; n = max(n+1, uint32(math.Ceil(float64(n)*ratio))) {
		all = append(all, n)
	}
	if len(all) == 0 || all[len(all)-1] != highest {
		all = append(all, highest)
	}
	return slices.Compact(all)
}
