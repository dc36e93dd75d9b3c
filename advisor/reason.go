package advisor

import (
	"courier/regress/evidence"
	"courier/schemas"
)

// Reasons of the alternatives. They are constants, so that an answer allocates nothing per
// alternative.
const (
	reasonMostAccurate = "the most accurate of those likely enough to keep the SLO"
	reasonFastest      = "none keeps the SLO likely enough: this is the most likely"
	reasonSurest       = "the most likely to keep the SLO, and likely enough to be promised"
	reasonScore        = "highest weighted score"
	reasonLearn        = "run it to learn from it"
	reasonKeep         = "runs already, and keeps the SLO likely enough"
	reasonChange       = "likely enough to keep the SLO, but so is what runs already"
	reasonTooUnlikely  = "keeps the SLO too rarely"
	reasonBeyond       = "beyond what was measured: nothing can be promised"
	reasonLessAccurate = "likely enough to keep the SLO, but less accurate"
	reasonTieDearer    = "as accurate as its validation can tell, but costs more CPU time"
	reasonCheapest     = "likely enough to keep the SLO, and the cheapest of those that are " +
		"as accurate as its validation can tell"
	reasonLessLikely = "less likely to keep the SLO"
	reasonLowerScore = "lower weighted score"
	reasonUnknown    = "not known yet"
	reasonShort      = "does not reach the accuracy"
)

// Reasons of the alternatives of evidence regressors.
const (
	reasonBestExpected = "the highest expected accuracy of those likely enough to keep the SLO"
	reasonQuickest     = "the fastest of those likely enough to keep the SLO and reach " +
		"the accuracy"
	reasonLikeliest = "the most likely to keep the SLO and reach the accuracy"
	reasonClosest   = "none keeps the SLO likely enough: this is the best by " +
		"probability and accuracy"
	reasonClosestTarget = "none keeps the SLO and reaches the accuracy likely enough: this " +
		"is the most likely"
	reasonClosestNever = "no run of the model has reached the accuracy: this gives the " +
		"highest expected one in time"
	reasonClosestHope = "none keeps the SLO and reaches the accuracy: this gives the " +
		"highest expected one in time"
	reasonLessSure       = "likely enough to keep the SLO, but less likely than the chosen one"
	reasonLowerExpected  = "likely enough to keep the SLO, but its expected accuracy is lower"
	reasonSlower         = "likely enough to keep the SLO, but slower"
	reasonLessSureTarget = "likely enough to keep the SLO and reach the accuracy, but less likely"
	reasonSlowerTarget   = "likely enough to keep the SLO and reach the accuracy, but slower"

	reasonNever    = "no run of the model has reached the accuracy"
	reasonRarely   = "reaches the accuracy too rarely"
	reasonBoth     = "keeps the SLO and reaches the accuracy too rarely"
	reasonJoint    = "keeps the SLO and reaches the accuracy likely enough each, but not both"
	reasonBlind    = "its accuracy after so many epochs is not known"
	reasonBlindRun = "its accuracy after so many epochs is not known: run it to learn from it"

	reasonNoRun    = "no run of the model: nothing is known"
	reasonNoNode   = "no run of the model on such a node: nothing is known"
	reasonManyCPUs = "no run of the model with so many CPUs on such a node: nothing " +
		"can be promised"
	reasonFewCPUs = "no run of the model with so few CPUs on such a node: nothing " +
		"can be promised"
	reasonNoLoad = "no run of the model beside so much else on such a node: nothing " +
		"can be promised"
	reasonLargeBatch = "no run of the model with so large a batch size on such a node: " +
		"nothing can be promised"
	reasonSmallBatch = "no run of the model with so small a batch size on such a node: " +
		"nothing can be promised"
	reasonNoNeighbours = "the batch sizes that ran are too far from it: nothing can be promised"
	reasonTooFew       = "too few configurations of the model ran to promise anything " +
		"between them"
	reasonNoAgreement = "the runs around it are too few or differ too much: nothing can " +
		"be promised"
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
		return reasonSlowerTarget
	case m.mean < than.mean:
		return reasonLowerExpected
	case probability(alt) < probability(chosen):
		return reasonLessSure
	}
	return reasonSlower
}
