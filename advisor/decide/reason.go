package decide

import (
	"fmt"

	"courier/regress/evidence"
	"courier/schemas"
)

// Reasons of the alternatives. An alternative can be promised if its probability reaches the
// confidence.
const (
	reasonScore       = "highest weighted score"
	reasonLowerScore  = "lower weighted score"
	reasonLearn       = "run it to learn from it"
	reasonUnknown     = "not known yet"
	reasonKnown       = "its time is known already"
	reasonKeep        = "runs already, and can be promised"
	reasonChange      = "can be promised, but so can the current batch size"
	ReasonOtherCPUs   = "the current number of CPUs"
	reasonShort       = "does not reach the target accuracy"
	reasonTooUnlikely = "too unlikely to meet the SLO"

	// Of an elastic job whose CPUs are planned together with those of its nodes.
	reasonTooManyCPUs = "more CPUs than other jobs and other work leave for it now"
	reasonMoreGranted = "fewer CPUs than the job gets now"
)

// Reasons of a promise, and of its absence. With a target accuracy, an alternative can be promised if
// it meets the SLO and reaches the target with enough probability.
const (
	reasonBestExpected   = "the best by probability and expected accuracy of those that can be promised"
	reasonQuickest       = "the fastest of those that can be promised"
	reasonLikeliest      = "the most likely to meet the SLO and reach the target accuracy"
	reasonClosest        = "none can be promised, and this one comes closest: " // and why not
	reasonLessSure       = "can be promised, but is less likely to meet the SLO"
	reasonLowerExpected  = "can be promised, but its expected accuracy is lower"
	reasonSlower         = "can be promised, but is slower"
	reasonLessSureTarget = "can be promised, but is less likely to meet the SLO and reach the " +
		"target accuracy"

	reasonNever  = "no run of the model has reached the target accuracy"
	reasonRarely = "too unlikely to reach the target accuracy"
	reasonBoth   = "too unlikely to meet the SLO, and to reach the target accuracy"
	reasonJoint  = "likely to meet the SLO, and likely to reach the target accuracy, but too " +
		"unlikely to do both"
	reasonOnce  = "too few runs have reached the target accuracy for a promise"
	reasonBlind = "its accuracy after so many epochs is not known"

	reasonNoRun          = "no run of the model: nothing is known"
	reasonNoWorkers      = "no run of the model with %s: nothing is known"
	reasonNoNode         = "no run of the model on this node type: nothing is known"
	reasonAccuracyUnseen = "its time is known, but no accuracy of the model has been measured"
)

// extrapolationReason explains why an alternative with an extrapolated or unknown time cannot be
// promised.
func (p *problem) extrapolationReason(alt *schemas.Alternative) string {
	m := p.missing(alt)
	switch m.Lacks {
	case evidence.LacksModel:
		if p.Request.HasShapes() {
			return fmt.Sprintf(reasonNoWorkers, schemas.FormatCount(uint64(max(1, p.workers)), "worker"))
		}
		return reasonNoRun
	case evidence.LacksNodeType:
		return reasonNoNode
	}
	return "cannot be promised: the model" + ran(m)
}

// shortfall returns why a candidate cannot be promised; "" if it can.
func (p *problem) shortfall(c *candidate) string {
	least := p.Request.Confidence
	switch isLate, isLow := c.sloProbability < least, c.targetProbability < least; {
	case c.Extrapolated:
		return p.extrapolationReason(&c.Alternative)
	case p.isPromisable(&c.Alternative) && c.isMeasured:
		return ""
	case c.neverReached(p.Request.TargetAccuracy):
		return reasonNever
	case c.isReachedOnce:
		return reasonOnce
	case !c.isMeasured:
		return reasonBlind
	case isLate && isLow:
		return reasonBoth
	case isLow:
		return reasonRarely
	case isLate:
		return reasonTooUnlikely
	}
	return reasonJoint
}

// neverReached reports whether no run of the model has reached a target accuracy, although
// accuracies were measured.
func (c *candidate) neverReached(target float64) bool {
	const tolerance = 1e-9 // for the rounding of accuracies in the log
	return c.highestAccuracy > 0 && c.highestAccuracy < target-tolerance
}

// chosenReason returns the reason of the chosen candidate.
func (p *problem) chosenReason(c *candidate) string {
	short, hasTarget := p.shortfall(c), p.Request.TargetAccuracy > 0
	switch {
	case short != "" && (c.Extrapolated || !c.isMeasured):
		return short
	case short != "":
		return reasonClosest + short
	case p.isCurrent(&c.Alternative):
		return reasonKeep
	case !hasTarget && c.meanAccuracy > 0:
		return reasonBestExpected
	case hasTarget && ProbabilityOf(&c.Alternative) < nearlyCertain:
		return reasonLikeliest
	}
	return reasonQuickest
}

// lostReason returns why a candidate is worse than the chosen one.
func (p *problem) lostReason(c, chosen *candidate) string {
	short := p.shortfall(c)
	own, best := ProbabilityOf(&c.Alternative), ProbabilityOf(&chosen.Alternative)
	hasTarget := p.Request.TargetAccuracy > 0
	switch {
	case short != "":
		return short
	case p.isCurrent(&chosen.Alternative):
		return reasonChange
	case hasTarget && min(nearlyCertain, own) < min(nearlyCertain, best):
		return reasonLessSureTarget
	case hasTarget:
		return reasonSlower
	case c.meanAccuracy < chosen.meanAccuracy:
		return reasonLowerExpected
	case own < best:
		return reasonLessSure
	}
	return reasonSlower
}
