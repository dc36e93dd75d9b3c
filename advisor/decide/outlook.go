package decide

import (
	"math"

	"courier/advisor/cluster"
	"courier/regress/evidence"
)

// outlook is the distribution of the remaining time of a job: the median of its forecast times a
// residual, whose logarithm has a Student-t distribution.
type outlook struct {
	seconds        float64 // the median
	spread         spread
	shift          float64 // mean residual of its kind of job
	recalibration  *cluster.Recalibration
	isExtrapolated bool // outside the support: nothing can be promised
}

// spread is the spread of the logarithm of a time: of a Student-t distribution. It is unknown with
// scale 0.
type spread struct{ scale, degrees float64 }

// isPromisable reports whether there is a probability that may be promised.
func (o *outlook) isPromisable() bool { return o.spread.scale > 0 && !o.isExtrapolated }

// residual returns the distribution of the ratio of the time to its median.
func (o *outlook) residual() evidence.Distribution {
	return evidence.Distribution{
		Location: o.shift, Scale: o.spread.scale, Degrees: o.spread.degrees,
	}
}

// maxProbability bounds the probability of a time that is still to come. A Student-t distribution
// rounds to 1 far above its median, but no job is certain to end: nodes fail.
const maxProbability = 0.9999

// inTime returns the probability that the job ends within some seconds. ok is false if nothing
// can be promised.
func (o *outlook) inTime(within, confidence float64) (p float64, ok bool) {
	if within > 0 && o.spread.scale > 0 {
		share := o.residual().Probability(within / o.seconds)
		p = o.recalibration.Calibrated(share, confidence)
	}
	if within < o.seconds { // less than the median
		p = min(p, 0.5)
	}
	return min(p, maxProbability), o.isPromisable()
}

// upperBound returns the upper bound of the time with a confidence; ok is false if it cannot be
// promised, or if the confidence is above any probability. It inverts inTime.
func (o *outlook) upperBound(confidence float64) (seconds float64, ok bool) {
	if !o.isPromisable() || confidence > maxProbability {
		return 0, false
	}
	level := 1 - o.recalibration.MissRate(confidence)
	return o.seconds * max(1, o.residual().Quantile(level)), true
}

// spread returns the spread of the job's remaining time. It weights the uncertainties of the epochs
// and of the start-up by their shares of the time.
func (j *simulatedJob) spread(startup evidence.Distribution, epochs float64) spread {
	e := &j.leastCertain
	if !e.Known() || !(j.end > 0) {
		return spread{}
	}
	variance := e.Variance*j.plan.pace.varianceLeft + e.Noise/max(epochs, 1)
	if j.plan.startup > 0 && startup.Known() {
		share := min(1, j.plan.startup/j.end)
		variance = (1-share)*(1-share)*variance + share*share*startup.Scale*startup.Scale
	}
	return spread{math.Sqrt(variance), e.Degrees}
}
