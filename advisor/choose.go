package advisor

import (
	"cmp"
	"math"
	"slices"

	"courier/schemas"
)

// choose sets the decision and the chosen alternative, and the reason of every alternative.
func (d *decider) choose() {
	q, a := d.q, d.a
	var best int
	switch {
	case !d.knows.time || !d.knows.accuracy && q.Request.SLO == 0:
		best = d.exploreFirst(q, a)
	case q.Request.SLO == 0:
		best = d.chooseScore(q, a)
	case d.knows.accuracy && d.r.Accuracy.evidence != nil:
		best = d.chooseByEvidence(q, a)
	default:
		best = chooseWithin(q, a)
	}
	if d.knows.time && !d.knows.accuracy && d.byEvidence() {
		a.Alternatives[best].Reason = reasonAccuracyUnseen
	}
	chosen := a.Alternatives[best]
	a.Chosen = &chosen
	if d.knows.time && !d.knows.accuracy || chosen.Extrapolated || d.accuracyUnknown(best) {
		a.Decision = schemas.Exploring
	}
}

// accuracyUnknown reports whether the accuracy of an alternative after its epochs is unknown.
func (d *decider) accuracyUnknown(i int) bool { return i < len(d.merits) && !d.merits[i].known }

// seconds returns the predicted time of an alternative whose time is known.
func seconds(alt *schemas.Alternative) float64 { return *alt.PredictedSeconds }

// accuracy returns the predicted accuracy, 0 if it is unknown.
func accuracy(alt *schemas.Alternative) float64 {
	if alt.PredictedAccuracy == nil {
		return 0
	}
	return *alt.PredictedAccuracy
}

// probability returns the probability of the SLO, 0 if it is unknown.
func probability(alt *schemas.Alternative) float64 {
	if alt.Probability == nil {
		return 0
	}
	return *alt.Probability
}

// usefulAccuracy returns the predicted accuracy, capped at the target accuracy.
func (q *Question) usefulAccuracy(alt *schemas.Alternative) float64 {
	if t := q.Request.TargetAccuracy; t > 0 {
		return min(t, accuracy(alt))
	}
	return accuracy(alt)
}

// isLikely reports whether an alternative keeps the SLO with at least likelyThreshold. Among such
// alternatives accuracy decides.
func (q *Question) isLikely(alt *schemas.Alternative) bool {
	return probability(alt) >= q.likelyThreshold() && !alt.Extrapolated
}

// isPromisable reports whether an alternative keeps the SLO with at least minProbability.
func (q *Question) isPromisable(alt *schemas.Alternative) bool {
	return probability(alt) >= q.minProbability() && !alt.Extrapolated
}

// chooseWithin chooses the most accurate alternative that is likely to keep the SLO; CPU time
// breaks ties. If none is likely to, it chooses the alternative with the highest probability. An
// extrapolated alternative wins only if all are extrapolated.
func chooseWithin(q *Question, a *schemas.Advice) int {
	best, fallback, highest := -1, 0, 0.0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.betterFallback(alt, &a.Alternatives[fallback]) {
			fallback = i
		}
		if q.isLikely(alt) {
			highest = max(highest, q.usefulAccuracy(alt))
		}
	}
	tie := highest - q.standardError(highest)
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.isLikely(alt) && (best < 0 || q.betterLikely(alt, &a.Alternatives[best], tie)) {
			best = i
		}
	}
	if best < 0 {
		a.Decision = schemas.BestEffort
		chosen := reasonFastest
		if q.isPromisable(&a.Alternatives[fallback]) {
			a.Decision, chosen = q.keepingDecision(&a.Alternatives[fallback], reasonSurest)
		}
		explain(a, fallback, chosen, func(alt *schemas.Alternative) string {
			if alt.Extrapolated {
				return reasonBeyond
			}
			return reasonLessLikely
		})
		return fallback
	}
	chosen := reasonMostAccurate
	if q.usefulAccuracy(&a.Alternatives[best]) < highest {
		chosen = reasonCheapest
	}
	if q.isCurrent(&a.Alternatives[best]) {
		chosen = reasonKeep
	}
	a.Decision, chosen = q.keepingDecision(&a.Alternatives[best], chosen)
	explain(a, best, chosen, func(alt *schemas.Alternative) string {
		switch {
		case alt.Extrapolated:
			return reasonBeyond
		case !q.isLikely(alt):
			return reasonTooUnlikely
		case q.isCurrent(&a.Alternatives[best]):
			return reasonChange
		case q.usefulAccuracy(alt) >= tie:
			return reasonTieDearer
		}
		return reasonLessAccurate
	})
	return best
}

// keepingDecision returns the decision for an alternative that keeps the SLO, and its reason. The
// SLO is promised only if the alternative also reaches the target accuracy.
func (q *Question) keepingDecision(
	alt *schemas.Alternative, why string,
) (schemas.Decision, string) {
	if t := q.Request.TargetAccuracy; t > 0 && q.usefulAccuracy(alt) < t {
		return schemas.BestEffort, reasonShort
	}
	return schemas.MeetsSLO, why
}

// betterFallback compares two alternatives if none is likely enough.
func (q *Question) betterFallback(alt, best *schemas.Alternative) bool {
	if alt.Extrapolated != best.Extrapolated {
		return best.Extrapolated
	}
	if probability(alt) != probability(best) {
		return probability(alt) > probability(best)
	}
	return seconds(alt) < seconds(best)
}

// betterLikely compares two alternatives that are likely to keep the SLO. Alternatives with at
// least the accuracy tie are equally accurate, and CPU time decides. A running job keeps its batch
// size as long as that is likely, because no regressor knows the cost of a change.
func (q *Question) betterLikely(alt, best *schemas.Alternative, tie float64) bool {
	if q.isCurrent(alt) != q.isCurrent(best) {
		return q.isCurrent(alt)
	}
	a, b := min(tie, q.usefulAccuracy(alt)), min(tie, q.usefulAccuracy(best))
	switch {
	case a != b:
		return a > b
	case *alt.CPUSeconds != *best.CPUSeconds:
		return *alt.CPUSeconds < *best.CPUSeconds
	}
	return q.usefulAccuracy(alt) > q.usefulAccuracy(best)
}

// standardError returns the standard error of an accuracy on the validation set, sqrt(p (1 - p) /
// n). Smaller differences are ties. It is 0 if the size of the set is unknown, or if the request
// has a target accuracy.
func (q *Question) standardError(accuracy float64) float64 {
	n := q.Described.ValidationSamples
	if n == 0 || q.Request.TargetAccuracy > 0 {
		return 0
	}
	return math.Sqrt(accuracy * (1 - accuracy) / float64(n))
}

// chooseScore maximizes weight of accuracy · accuracy / largest + weight of time · (1 − time /
// longest). If any alternative reaches the target accuracy, it chooses among those.
func (d *decider) chooseScore(q *Question, a *schemas.Advice) int {
	a.Decision = schemas.Weighted
	w := q.Request.Weights
	var largest, longest float64
	for i := range a.Alternatives {
		largest = max(largest, accuracy(&a.Alternatives[i]))
		longest = max(longest, seconds(&a.Alternatives[i]))
	}
	reaches := d.reaching(largest)
	best := -1
	scores := make([]float64, len(a.Alternatives))
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if largest > 0 {
			scores[i] += w.Accuracy * accuracy(alt) / largest
		}
		if longest > 0 {
			scores[i] += w.Time * (1 - seconds(alt)/longest)
		}
		alt.Score = &scores[i]
		if reaches(i) && (best < 0 || scores[i] > scores[best]) {
			best = i
		}
	}
	explain(a, best, reasonScore, func(alt *schemas.Alternative) string {
		for i := range a.Alternatives {
			if &a.Alternatives[i] == alt && !reaches(i) {
				return reasonShort
			}
		}
		return reasonLowerScore
	})
	return best
}

// reaching returns a function that reports whether an alternative reaches the target accuracy with
// at least minProbability. If none does, the function selects the most likely or the most accurate
// ones.
func (d *decider) reaching(largest float64) func(i int) bool {
	if len(d.merits) == 0 {
		target := min(d.q.Request.TargetAccuracy, largest)
		return func(i int) bool { return accuracy(&d.a.Alternatives[i]) >= target }
	}
	highest := 0.0
	for i := range d.merits {
		highest = max(highest, d.merits[i].targetProbability)
	}
	lowest := min(highest, d.q.minProbability())
	return func(i int) bool { return d.merits[i].targetProbability >= lowest }
}

func explain(a *schemas.Advice, best int, chosen string, lost func(*schemas.Alternative) string) {
	for i := range a.Alternatives {
		if i == best {
			a.Alternatives[i].Reason = chosen
		} else {
			a.Alternatives[i].Reason = lost(&a.Alternatives[i])
		}
	}
}

// chooseByEvidence chooses among the alternatives that may be promised. Without a target accuracy
// it maximizes probability times expected accuracy; the shorter time breaks ties. With a target
// accuracy it chooses the fastest one that is nearly certain, otherwise the most likely one. If
// none may be promised, it maximizes probability times expected accuracy.
func (d *decider) chooseByEvidence(q *Question, a *schemas.Advice) int {
	best, fallback := -1, 0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.betterExpected(alt, &d.merits[i], &a.Alternatives[fallback], &d.merits[fallback]) {
			fallback = i
		}
		if !q.isPromisable(alt) || !d.merits[i].known {
			continue
		}
		if best < 0 ||
			q.betterPromised(alt, &d.merits[i], &a.Alternatives[best], &d.merits[best]) {
			best = i
		}
	}
	a.Decision = schemas.MeetsSLO
	if best < 0 {
		a.Decision, best = schemas.BestEffort, fallback
	}
	for i := range a.Alternatives {
		if i == best {
			a.Alternatives[i].Reason = d.chosenReason(i)
		} else {
			a.Alternatives[i].Reason = d.lostReason(i, best)
		}
	}
	return best
}

// betterPromised compares two alternatives that may both be promised. A running job keeps its batch
// size. With schemas.PromiseMean accuracy alone decides among the likely alternatives, because the
// threshold already spends the surplus of other promises. Probability times accuracy would give
// away 0.15 points of accuracy, and keep more promises than requested (BENCHMARKS.md).
func (q *Question) betterPromised(
	alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit,
) bool {
	if q.isCurrent(alt) != q.isCurrent(best) {
		return q.isCurrent(alt)
	}
	if q.Request.TargetAccuracy > 0 {
		x, y := min(nearlyCertain, probability(alt)), min(nearlyCertain, probability(best))
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
	}
	if q.Threshold > 0 && q.isLikely(alt) != q.isLikely(best) {
		return q.isLikely(alt)
	}

	x, y := probability(alt)*m.mean, probability(best)*than.mean
	if q.Threshold > 0 && q.isLikely(alt) {
		x, y = m.mean, than.mean
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
}

// betterExpected compares two alternatives if none may be promised. If the target accuracy is
// unreachable, the expected accuracy within the SLO decides.
func (q *Question) betterExpected(
	alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit,
) bool {
	if alt.Extrapolated != best.Extrapolated {
		return best.Extrapolated
	}
	p, r := probability(alt), probability(best)
	if q.Request.TargetAccuracy > 0 && max(p, r) < unreachableTarget {
		p, r = m.sloProbability, than.sloProbability
	}
	x, y := p*max(m.mean, tinyAccuracy), r*max(than.mean, tinyAccuracy)
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
}

// tinyAccuracy replaces an unknown accuracy, so that time decides.
const tinyAccuracy = 1e-6

// BatchAndCPUs is the part of a configuration that an alternative sets.
type BatchAndCPUs struct{ BatchSize, CPUs uint32 }

// distance returns the Euclidean distance in doublings.
func (c BatchAndCPUs) distance(to BatchAndCPUs) float64 {
	return math.Hypot(math.Log2(float64(c.BatchSize)/float64(to.BatchSize)),
		math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// nearest returns the distance to the nearest of some configurations, +Inf without any.
func (c BatchAndCPUs) nearest(to []BatchAndCPUs) float64 {
	lowest := math.Inf(1)
	for _, t := range to {
		lowest = min(lowest, c.distance(t))
	}
	return lowest
}

// exploreFirst chooses the alternative farthest from the tried ones, so that each job extends the
// support of the regressors (maximin design, Johnson et al. 1990). If no alternative or every
// alternative was tried, it chooses the largest batch size with the most CPUs, which is assumed to
// have the shortest epoch. Alternatives that will probably miss the SLO come last. A running job
// continues unchanged.
func (d *decider) exploreFirst(q *Question, a *schemas.Advice) int {
	a.Decision = schemas.Exploring
	for i := range a.Alternatives {
		a.Alternatives[i].Reason = reasonUnknown
		if d.byEvidence() && !d.knows.time {
			a.Alternatives[i].Reason = d.extrapolationReason(&a.Alternatives[i])
		}
	}
	best := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool {
		return q.isCurrent(&alt)
	})
	if best < 0 {
		best = farthest(a.Alternatives, q.Tried, mayKeepSLO)
	}
	if best < 0 {
		best = farthest(a.Alternatives, q.Tried, func(*schemas.Alternative) bool { return true })
	}
	a.Alternatives[best].Reason = reasonLearn
	return best
}

// mayKeepSLO reports whether an alternative has a fair chance to keep its SLO.
func mayKeepSLO(alt *schemas.Alternative) bool { return probability(alt) >= likelyMissed }

// farthest returns the index of the allowed alternative that is farthest from the tried ones; -1 if
// none is allowed. The shortest epoch breaks ties.
func farthest(
	all []schemas.Alternative, tried []BatchAndCPUs, may func(*schemas.Alternative) bool,
) int {
	best, highest := -1, -1.0
	for i := range all {
		alt := &all[i]
		if !may(alt) {
			continue
		}
		d := BatchAndCPUs{alt.BatchSize, alt.CPUs}.nearest(tried)
		if best >= 0 && d == highest {
			b := &all[best]
			if alt.BatchSize > b.BatchSize || alt.BatchSize == b.BatchSize && alt.CPUs > b.CPUs {
				best = i
			}
		} else if d > highest {
			best, highest = i, d
		}
	}
	return best
}

// maxProbes bounds the epochs that an answer proposes for learning a model.
const maxProbes = 3

// probes plans the most informative epochs of an unknown model: the chosen configuration, then
// repeatedly the configuration that is farthest from all previous configurations. It returns nil if
// all configurations have been tried.
func (d *decider) probes(a *schemas.Advice) (plan []schemas.ProbeEpoch) {
	tried := slices.Clone(d.q.Tried)
	next := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool {
		return alt.BatchSize == a.Chosen.BatchSize && alt.CPUs == a.Chosen.CPUs
	})
	for len(plan) < maxProbes && next >= 0 {
		alt := &a.Alternatives[next]
		c := BatchAndCPUs{alt.BatchSize, alt.CPUs}
		if c.nearest(tried) == 0 {
			break
		}
		p := schemas.ProbeEpoch{BatchSize: alt.BatchSize, CPUs: alt.CPUs, Epochs: 1}
		plan, tried = append(plan, p), append(tried, c)
		next = farthest(a.Alternatives, tried, func(*schemas.Alternative) bool { return true })
	}
	return plan
}
