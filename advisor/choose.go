package advisor

import (
	"cmp"
	"math"
	"slices"

	"courier/schemas"
)

// choose sets the decision and the chosen alternative, and why the others lost.
func (d *decision) choose() {
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

// blind reports whether nothing is known of the accuracy of an alternative after its epochs.
func (d *decision) accuracyUnknown(i int) bool { return i < len(d.merits) && !d.merits[i].known }

// seconds, accuracy and probability of an alternative whose time is known.
func seconds(alt *schemas.Alternative) float64 { return *alt.PredictedSeconds }

func accuracy(alt *schemas.Alternative) float64 {
	if alt.PredictedAccuracy == nil {
		return 0
	}
	return *alt.PredictedAccuracy
}

func probability(alt *schemas.Alternative) float64 {
	if alt.Probability == nil {
		return 0
	}
	return *alt.Probability
}

// worth is the accuracy that counts: more than the target is no better.
func (q *Question) worth(alt *schemas.Alternative) float64 {
	if t := q.Request.TargetAccuracy; t > 0 {
		return min(t, accuracy(alt))
	}
	return accuracy(alt)
}

// likely reports whether an alternative keeps the SLO so surely that accuracy
// decides.
func (q *Question) isLikely(alt *schemas.Alternative) bool {
	return probability(alt) >= q.likelyThreshold() && !alt.Extrapolated
}

// promised reports whether an alternative keeps the SLO so surely that it may be
// promised where none is likely.
func (q *Question) isPromisable(alt *schemas.Alternative) bool {
	return probability(alt) >= q.minProbability() && !alt.Extrapolated
}

// chooseWithin takes the most accurate alternative that keeps the SLO with the
// confidence asked for, ties by the CPU time that they cost; if there is none,
// the one that keeps it most likely. An alternative beyond the examples wins
// only where nothing else is known.
func chooseWithin(q *Question, a *schemas.Advice) int {
	best, hope, most := -1, 0, 0.0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.betterFallback(alt, &a.Alternatives[hope]) {
			hope = i
		}
		if q.isLikely(alt) {
			most = max(most, q.worth(alt))
		}
	}
	tie := most - q.standardError(most)
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.isLikely(alt) && (best < 0 || q.betterLikely(alt, &a.Alternatives[best], tie)) {
			best = i
		}
	}
	if best < 0 {
		a.Decision = schemas.BestEffort
		chosen := reasonFastest
		if q.isPromisable(&a.Alternatives[hope]) {
			a.Decision, chosen = q.reaching(&a.Alternatives[hope], reasonSurest)
		}
		explain(a, hope, chosen, func(alt *schemas.Alternative) string {
			if alt.Extrapolated {
				return reasonBeyond
			}
			return reasonLessLikely
		})
		return hope
	}
	chosen := reasonMostAccurate
	if q.worth(&a.Alternatives[best]) < most {
		chosen = reasonCheapest
	}
	if q.isCurrent(&a.Alternatives[best]) {
		chosen = reasonKeep
	}
	a.Decision, chosen = q.reaching(&a.Alternatives[best], chosen)
	explain(a, best, chosen, func(alt *schemas.Alternative) string {
		switch {
		case alt.Extrapolated:
			return reasonBeyond
		case !q.isLikely(alt):
			return reasonTooUnlikely
		case q.isCurrent(&a.Alternatives[best]):
			return reasonChange
		case q.worth(alt) >= tie:
			return reasonTieDearer
		}
		return reasonLessAccurate
	})
	return best
}

// reaching is the decision for an alternative that keeps the SLO, and the reason
// for it: it is promised if it is as accurate as was asked for, too.
func (q *Question) reaching(alt *schemas.Alternative, why string) (schemas.Decision, string) {
	if t := q.Request.TargetAccuracy; t > 0 && q.worth(alt) < t {
		return schemas.BestEffort, reasonShort
	}
	return schemas.MeetsSLO, why
}

// hopes compares two alternatives where none is likely enough.
func (q *Question) betterFallback(alt, best *schemas.Alternative) bool {
	if alt.Extrapolated != best.Extrapolated {
		return best.Extrapolated
	}
	if probability(alt) != probability(best) {
		return probability(alt) > probability(best)
	}
	return seconds(alt) < seconds(best)
}

// better compares two alternatives that keep the SLO; those of at least some
// accuracy are a tie, which the CPU time decides. A job that runs keeps its batch
// size while that does: a change costs what no regressor knows.
func (q *Question) betterLikely(alt, best *schemas.Alternative, least float64) bool {
	if q.isCurrent(alt) != q.isCurrent(best) {
		return q.isCurrent(alt)
	}
	a, b := min(least, q.worth(alt)), min(least, q.worth(best))
	switch {
	case a != b:
		return a > b
	case *alt.CPUSeconds != *best.CPUSeconds:
		return *alt.CPUSeconds < *best.CPUSeconds
	}
	return q.worth(alt) > q.worth(best)
}

// standardError is that of an accuracy on the model's validation set, sqrt(p (1 -
// p) / n): what differs by less is a tie. 0 where the set's size is not known, and
// where the request says which accuracy is enough.
func (q *Question) standardError(accuracy float64) float64 {
	n := q.Described.ValidationSamples
	if n == 0 || q.Request.TargetAccuracy > 0 {
		return 0
	}
	return math.Sqrt(accuracy * (1 - accuracy) / float64(n))
}

// chooseScore chooses by weight of accuracy · accuracy / largest + weight of
// time · (1 − time / longest), among those that reach the target if any does.
func (d *decision) chooseScore(q *Question, a *schemas.Advice) int {
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

// reaching returns whether each alternative reaches the target accuracy as surely as asked for; if
// none does, whether it is the likeliest, or the most accurate, of all.
func (d *decision) reaching(largest float64) func(i int) bool {
	if len(d.merits) == 0 {
		target := min(d.q.Request.TargetAccuracy, largest)
		return func(i int) bool { return accuracy(&d.a.Alternatives[i]) >= target }
	}
	most := 0.0
	for i := range d.merits {
		most = max(most, d.merits[i].targetProbability)
	}
	least := min(most, d.q.minProbability())
	return func(i int) bool { return d.merits[i].targetProbability >= least }
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

// chooseByEvidence takes, of the alternatives that may be promised, the one with the largest
// probability times expected accuracy, ties by time; with a target accuracy the fastest that keeps
// SLO and target as good as surely, else the most likely. Where none may be promised it takes the
// one with the largest probability times accuracy.
func (d *decision) chooseByEvidence(q *Question, a *schemas.Advice) int {
	best, hope := -1, 0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.betterExpected(alt, &d.merits[i], &a.Alternatives[hope], &d.merits[hope]) {
			hope = i
		}
		if q.isPromisable(alt) && d.merits[i].known &&
			(best < 0 || q.betterPromised(alt, &d.merits[i], &a.Alternatives[best], &d.merits[best])) {
			best = i
		}
	}
	a.Decision = schemas.MeetsSLO
	if best < 0 {
		a.Decision, best = schemas.BestEffort, hope
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

// beats compares two alternatives that may both be promised. A job that runs keeps its batch size.
func (q *Question) betterPromised(alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit) bool {
	if q.isCurrent(alt) != q.isCurrent(best) {
		return q.isCurrent(alt)
	}
	if q.Request.TargetAccuracy > 0 {
		x, y := min(nearlyCertain, probability(alt)), min(nearlyCertain, probability(best))
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
	}
	x, y := probability(alt)*m.mean, probability(best)*than.mean
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
}

// expects compares two alternatives where none may be promised. Where a target accuracy is out of
// reach the accuracy that may be expected in time decides.
func (q *Question) betterExpected(alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit) bool {
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

// tinyAccuracy stands for an accuracy that is not known: time alone decides.
const tinyAccuracy = 1e-6

// Configuration is what an alternative fixes and an epoch teaches about.
type BatchAndCPUs struct{ BatchSize, CPUs uint32 }

// distance of two configurations, in doublings.
func (c BatchAndCPUs) distance(to BatchAndCPUs) float64 {
	return math.Hypot(math.Log2(float64(c.BatchSize)/float64(to.BatchSize)),
		math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// nearest is the distance to the closest of some configurations.
func (c BatchAndCPUs) nearest(to []BatchAndCPUs) float64 {
	least := math.Inf(1)
	for _, t := range to {
		least = min(least, c.distance(t))
	}
	return least
}

// exploreFirst takes the alternative that teaches most: the one farthest from
// what was tried, so that each job widens what is known (maximin design, Johnson
// et al. 1990). Where nothing was tried, or nothing is left to try, it is the
// one with the shortest epoch: by the paper that of the largest batch with the
// most CPUs. What will hardly keep the SLO comes last. A job that runs goes on as
// it does: it teaches already.
func (d *decision) exploreFirst(q *Question, a *schemas.Advice) int {
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

// mayKeepSLO reports whether an alternative is not known to miss its SLO.
func mayKeepSLO(alt *schemas.Alternative) bool { return probability(alt) >= likelyMissed }

// farthest returns the alternative farthest from what was tried among those that
// may be taken; of several, the one with the shortest epoch. -1: none may.
func farthest(
	all []schemas.Alternative, tried []BatchAndCPUs, may func(*schemas.Alternative) bool,
) int {
	best, most := -1, -1.0
	for i := range all {
		alt := &all[i]
		if !may(alt) {
			continue
		}
		d := BatchAndCPUs{alt.BatchSize, alt.CPUs}.nearest(tried)
		if best >= 0 && d == most {
			b := &all[best]
			if alt.BatchSize > b.BatchSize || alt.BatchSize == b.BatchSize && alt.CPUs > b.CPUs {
				best = i
			}
		} else if d > most {
			best, most = i, d
		}
	}
	return best
}

// mostProbes is how many epochs an answer proposes at most to learn a model by.
const maxProbes = 3

// probes plans the epochs that teach most about a model of which nothing is known: the
// chosen configuration first, then each time the one farthest from all before it. It
// returns none where all configurations have been tried.
func (d *decision) probes(a *schemas.Advice) (plan []schemas.ProbeEpoch) {
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
