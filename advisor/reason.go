package advisor

import (
	"courier/regress/evidence"
	"courier/schemas"
)

// Reasons of the alternatives. They are constants, so that an answer allocates nothing per
// alternative. An alternative can be promised if its probability reaches the threshold of the
// request.
const (
	reasonMostAccurate = "the most accurate of those that can be promised"
	reasonFastest      = "none can be promised: this one is the most likely to meet the SLO"
	reasonSurest       = "can be promised, and is the most likely to meet the SLO"
	reasonScore        = "highest weighted score"
	reasonLearn        = "run it to learn from it"
	reasonKeep         = "runs already, and can be promised"
	reasonChange       = "can be promised, but so can the current batch size"
	reasonOtherCPUs    = "the current number of CPUs"
	reasonTooUnlikely  = "too unlikely to meet the SLO"
	reasonBeyond       = "outside the measured range: cannot be promised"
	reasonLessAccurate = "can be promised, but is less accurate"
	reasonTieDearer    = "as accurate within the error of validation, but costs more CPU time"
	reasonCheapest     = "can be promised, and costs the least CPU time of those that are as " +
		"accurate within the error of validation"
	reasonLessLikely = "less likely to meet the SLO"
	reasonLowerScore = "lower weighted score"
	reasonUnknown    = "not known yet"
	reasonShort      = "does not reach the target accuracy"

	// Of an elastic job whose CPUs are planned together with those of its nodes.
	reasonTooManyCPUs = "more CPUs than other jobs and other work leave for it now"
	reasonMoreGranted = "fewer CPUs than the job gets now"
)

// Reasons of the alternatives of evidence regressors. With a target accuracy, an alternative can be
// promised if it meets the SLO and reaches the target with enough probability.
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
func (d *decider) extrapolationReason(alt *schemas.Alternative) string {
	m := d.missing(alt)
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
	case evidence.LacksLoad:
		return reasonNoLoad
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
	return reasonBeyond
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

// shortfallOf returns the condition of a promise that an alternative does not meet.
func (q *Question) shortfallOf(alt *schemas.Alternative, m *merit) shortfall {
	least, target := q.minProbability(), q.Request.TargetAccuracy
	late, low := m.sloProbability < least, m.targetProbability < least
	switch {
	case alt.Extrapolated:
		return shortEvidence
	case q.isPromisable(alt) && m.known:
		return shortNone
	case target > 0 && q.neverReached(m):
		return shortNever
	case !m.known:
		return shortBlind
	case late && low:
		return shortBoth
	case low:
		return shortAccuracy
	case late:
		return shortTime
	}
	return shortJoint
}

// neverReached reports whether no run of the model has reached the target accuracy.
func (q *Question) neverReached(m *merit) bool {
	const tolerance = 1e-9 // for the rounding of accuracies in the log
	return m.maxAccuracy < q.Request.TargetAccuracy-tolerance
}

// chosenReason returns the reason of the chosen alternative.
func (d *decider) chosenReason(i int) string {
	q, alt, m := d.q, &d.a.Alternatives[i], &d.merits[i]
	target := q.Request.TargetAccuracy > 0
	switch short := q.shortfallOf(alt, m); {
	case short == shortNone && q.isCurrent(alt):
		return reasonKeep
	case short == shortNone && !target:
		return reasonBestExpected
	case short == shortNone && probability(alt) < nearlyCertain:
		return reasonLikeliest
	case short == shortNone:
		return reasonQuickest
	case short == shortEvidence:
		return d.extrapolationReason(alt)
	case short == shortNever:
		return reasonClosestNever
	case short == shortBlind:
		return reasonBlindRun
	case target && probability(alt) < unreachableTarget:
		return reasonClosestHope
	case target:
		return reasonClosestTarget
	}
	return reasonClosest
}

// lostReason returns why an alternative is worse than the chosen one.
func (d *decider) lostReason(i, best int) string {
	q, alt, m := d.q, &d.a.Alternatives[i], &d.merits[i]
	switch q.shortfallOf(alt, m) {
	case shortEvidence:
		return d.extrapolationReason(alt)
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
	chosen, than := &d.a.Alternatives[best], &d.merits[best]
	target := q.Request.TargetAccuracy > 0
	switch {
	case q.isCurrent(chosen):
		return reasonChange
	case target && min(nearlyCertain, probability(alt)) < min(nearlyCertain, probability(chosen)):
		return reasonLessSureTarget
	case target:
		return reasonSlower
	case m.mean < than.mean:
		return reasonLowerExpected
	case probability(alt) < probability(chosen):
		return reasonLessSure
	}
	return reasonSlower
}
