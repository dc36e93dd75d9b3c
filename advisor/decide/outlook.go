package decide

import (
	"math"

	"courier/regress/evidence"
)

// outlook is the distribution of the remaining time of a job. Median, bound and probability follow
// from it alone.
type outlook struct {
	evidence.Distribution      // unknown with scale 0
	isExtrapolated        bool // outside the support: nothing can be promised
}

// isPromisable reports whether there is a probability that may be promised.
func (o *outlook) isPromisable() bool { return o.Known() && !o.isExtrapolated }

// maxProbability bounds the probability of a time that is still to come. A Student-t distribution
// rounds to 1 far above its median, but no job is certain to end: nodes fail.
const maxProbability = 0.9999

// inTime returns the probability that the job ends within some seconds. ok is false if nothing
// can be promised.
func (o *outlook) inTime(within float64) (p float64, ok bool) {
	if within > 0 && o.Known() {
		p = o.Probability(within)
	}
	return min(p, maxProbability), o.isPromisable()
}

// upperBound returns the upper bound of the time with a confidence; ok is false if it cannot be
// promised, or if the confidence is above any probability. It inverts inTime.
func (o *outlook) upperBound(confidence float64) (seconds float64, ok bool) {
	if !o.isPromisable() || confidence > maxProbability {
		return 0, false
	}
	return o.Quantile(confidence), true
}

// outlook returns the distribution of the remaining time of a job, forecast in seconds: the sum of its
// remaining start-up and of its remaining epochs. Of the start-up or the epoch in progress, the time that has
// passed is certain, and the rest is not.
func (j *simulatedJob) outlook(seconds float64, e *evidence.EpochTime, startup evidence.Distribution) outlook {
	o := outlook{isExtrapolated: e.Known() && !e.Support.Promisable()}
	if !e.Known() || !(seconds > 0) || math.IsInf(seconds, 1) {
		return o
	}
	before := j.plan.startup
	if !startup.Known() { // it varies as the epochs do
		before = 0
	}
	rest := max(seconds-before, tinySeconds)
	epochs := evidence.Distribution{
		Location: math.Log(rest + j.plan.spent), Scale: math.Sqrt(e.Variance), Degrees: e.Degrees,
	}
	o.Distribution = epochs.Rest(rest)
	if before > 0 {
		o.Distribution = o.Plus(startup.Rest(before))
	}
	return o
}
