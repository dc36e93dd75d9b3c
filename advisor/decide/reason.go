package decide

import (
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
	reasonBestExpected  = "the best by probability and expected accuracy of those that can be promised"
	reasonQuickest      = "the fastest of those that can be promised"
	reasonLikeliest     = "the most likely to meet the SLO and reach the target accuracy"
	reasonClosest       = "none can be promised: this one is the best by probability and accuracy"
	reasonClosestTarget = "none can be promised: this one is the most likely to meet the SLO and " +
		"reach the target accuracy"
	reasonClosestNever = "no run of the model has reached the target accuracy: this one has the " +
		"highest expected accuracy within the SLO"
	reasonClosestHope = "none meets the SLO and reaches the target accuracy: this one has the " +
		"highest expected accuracy within the SLO"
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
	reasonBlind    = "its accuracy after so many epochs is not known"
	reasonBlindRun = "its accuracy after so many epochs is not known: run it to learn from it"

	reasonNoRun    = "no run of the model: nothing is known"
	reasonNoNode   = "no run of the model on this node type: nothing is known"
	reasonManyCPUs = "no run of the model with so many CPUs on this node type: cannot be promised"
	reasonFewCPUs  = "no run of the model with so few CPUs on this node type: cannot be promised"
	reasonNoLoad   = "no run of the model under such a load on this node type: cannot be " +
		"promised"
	reasonLargeBatch = "no run of the model with so large a batch size on this node type: cannot " +
		"be promised"
	reasonSmallBatch = "no run of the model with so small a batch size on this node type: cannot " +
		"be promised"
	reasonNoNeighbours = "too far from the batch sizes that ran: cannot be promised"
	reasonTooFew       = "too few configurations of the model ran to interpolate: cannot be promised"
	reasonNoAgreement  = "the runs around it are too few or differ too much: cannot be promised"

	reasonAccuracyUnseen = "its time is known, but no accuracy of the model has been measured"
)

// extrapolationReason explains why an alternative with an extrapolated or unknown time cannot be
// promised.
func (p *problem) extrapolationReason(alt *schemas.Alternative) string {
	m := p.missing(alt)
	switch m.Lacks {
	case evidence.LacksModel:
		return reasonNoRun
	case evidence.LacksNodeType:
		return reasonNoNode
	case evidence.LacksCPUs:
		if int(alt.CPUs) > m.High {
			return reasonManyCPUs
		}
		return reasonFewCPUs
	case evidence.LacksBatchSize:
		if int(alt.BatchSize) > m.High {
			return reasonLargeBatch
		}
		return reasonSmallBatch
	case evidence.LacksNeighbours:
		return reasonNoNeighbours
	case evidence.LacksConfigurations:
		return reasonTooFew
	case evidence.LacksAgreement:
		return reasonNoAgreement
	}
	return reasonNoLoad
}

// shortfall is the condition of a promise that an alternative does not meet.
type shortfall uint8

const (
	shortNone     shortfall = iota
	shortEvidence           // its time is extrapolated
	shortNever              // no run of the model has reached the target accuracy
	shortBlind              // its accuracy is unknown
	shortAccuracy           // the probability of the target accuracy is too low
	shortTime               // the probability of the SLO is too low
	shortBoth               // both probabilities are too low
	shortJoint              // only the joint probability is too low
)

// shortfallOf returns the condition of a promise that a candidate does not meet.
func (q *Question) shortfallOf(c *candidate) shortfall {
	least, target := q.Request.Confidence, q.Request.TargetAccuracy
	isLate, isLow := c.sloProbability < least, c.targetProbability < least
	switch {
	case c.Extrapolated:
		return shortEvidence
	case q.isPromisable(&c.Alternative) && c.isMeasured:
		return shortNone
	case c.neverReached(target):
		return shortNever
	case !c.isMeasured:
		return shortBlind
	case isLate && isLow:
		return shortBoth
	case isLow:
		return shortAccuracy
	case isLate:
		return shortTime
	}
	return shortJoint
}

// neverReached reports whether no run of the model has reached a target accuracy, although
// accuracies were measured.
func (c *candidate) neverReached(target float64) bool {
	const tolerance = 1e-9 // for the rounding of accuracies in the log
	return c.highestAccuracy > 0 && c.highestAccuracy < target-tolerance
}

// chosenReason returns the reason of the chosen candidate.
func (p *problem) chosenReason(c *candidate) string {
	hasTarget := p.Request.TargetAccuracy > 0
	switch short := p.shortfallOf(c); {
	case short == shortNone && p.isCurrent(&c.Alternative):
		return reasonKeep
	case short == shortNone && !hasTarget && c.meanAccuracy == 0:
		return reasonQuickest
	case short == shortNone && !hasTarget:
		return reasonBestExpected
	case short == shortNone && ProbabilityOf(&c.Alternative) < nearlyCertain:
		return reasonLikeliest
	case short == shortNone:
		return reasonQuickest
	case short == shortEvidence:
		return p.extrapolationReason(&c.Alternative)
	case short == shortNever:
		return reasonClosestNever
	case short == shortBlind:
		return reasonBlindRun
	case hasTarget && ProbabilityOf(&c.Alternative) < unreachableTarget:
		return reasonClosestHope
	case hasTarget:
		return reasonClosestTarget
	}
	return reasonClosest
}

// lostReason returns why a candidate is worse than the chosen one.
func (p *problem) lostReason(c, chosen *candidate) string {
	switch p.shortfallOf(c) {
	case shortEvidence:
		return p.extrapolationReason(&c.Alternative)
	case shortNever:
		return reasonNever
	case shortBlind:
		return reasonBlind
	case shortAccuracy:
		return reasonRarely
	case shortTime:
		return reasonTooUnlikely
	case shortBoth:
		return reasonBoth
	case shortJoint:
		return reasonJoint
	}
	own, best := ProbabilityOf(&c.Alternative), ProbabilityOf(&chosen.Alternative)
	switch hasTarget := p.Request.TargetAccuracy > 0; {
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
