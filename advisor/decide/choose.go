package decide

import (
	"cmp"
	"slices"

	"courier/schemas"
)

// choice is the chosen candidate, and what it means.
type choice struct {
	index    int
	decision schemas.Decision
}

// choose chooses a candidate, and sets the reason of each.
func (p *problem) choose(all []candidate) choice {
	hasTime, hasSLO := areTimed(all), p.Request.SLO > 0
	known := all
	if !hasTime && p.Self == nil {
		known = p.knownFirst(all)
		hasTime = slices.ContainsFunc(known, func(c candidate) bool { return mayKeepSLO(&c) })
	}
	if !hasTime || !p.hasAccuracy && !hasSLO {
		return p.exploreFirst(all, hasTime)
	}
	var c choice
	if hasSLO {
		c = p.choosePromise(known)
	} else {
		c = p.chooseScore(all)
	}
	if !p.of(all[c.index].Workers).hasAccuracy && !p.isOneBatchSize() {
		all[c.index].Reason = reasonAccuracyUnseen
	}
	if all[c.index].Extrapolated || !all[c.index].isMeasured {
		c.decision = schemas.Exploring
	}
	return c
}

// knownFirst moves the candidates whose time is known to the front, and returns them. The others are
// numbers of workers that never ran.
func (p *problem) knownFirst(all []candidate) []candidate {
	var known, unknown []candidate
	for _, c := range all {
		if c.PredictedSeconds != nil {
			known = append(known, c)
			continue
		}
		c.Reason = p.of(c.Workers).extrapolationReason(&c.Alternative)
		unknown = append(unknown, c)
	}
	copy(all[copy(all, known):], unknown)
	return all[:len(known)]
}

// isPromisable reports whether an alternative is expected to keep the SLO.
func (q *Question) isPromisable(alt *schemas.Alternative) bool {
	return q.isLikely(ProbabilityOf(alt), q.WasLikely && q.wasAdvised(alt)) && !alt.Extrapolated
}

// isLikely reports whether an SLO is expected to be kept with a probability: from the confidence on. Of the
// running jobs that fall slightly below it, nearly all keep their SLO, and a warning would be taken back. So
// an expectation lasts until the SLO will probably be missed, and returns half-way from the confidence to 1.
func (q *Question) isLikely(probability float64, wasLikely bool) bool {
	switch {
	case q.Self == nil:
		return probability >= q.Request.Confidence
	case wasLikely:
		return probability >= min(q.Request.Confidence, LikelyMissed)
	}
	return probability >= (1+q.Request.Confidence)/2
}

// wasAdvised reports whether the last advice for a running job was to run with an alternative.
func (q *Question) wasAdvised(alt *schemas.Alternative) bool {
	if q.Last != nil && q.Last.Action == schemas.ActionBatch {
		return alt.BatchSize == q.Last.BatchSize
	}
	return q.isCurrent(alt)
}

// choosePromise chooses among the candidates that may be promised. Without a target accuracy it
// maximizes probability times expected accuracy; the shorter time breaks ties. With a target
// accuracy it chooses the fastest one that is nearly certain, otherwise the most likely one. If
// none may be promised, it maximizes probability times expected accuracy.
func (p *problem) choosePromise(all []candidate) choice {
	best, fallback := -1, 0
	for i := range all {
		c := &all[i]
		if p.compareExpected(c, &all[fallback]) < 0 {
			fallback = i
		}
		if !p.isPromisable(&c.Alternative) || !c.isMeasured {
			continue
		}
		if best < 0 || p.comparePromised(c, &all[best]) < 0 {
			best = i
		}
	}
	chosen := choice{best, schemas.MeetsSLO}
	if best < 0 {
		chosen = choice{fallback, schemas.BestEffort}
	}
	for i := range all {
		own := p.of(all[i].Workers)
		if i == chosen.index {
			all[i].Reason = own.chosenReason(&all[i])
		} else {
			all[i].Reason = own.lostReason(&all[i], &all[chosen.index])
		}
	}
	return chosen
}

// comparePromised returns a negative number if a is better than b, which may both be promised. A
// running job keeps its batch size.
func (p *problem) comparePromised(a, b *candidate) int {
	if current := p.isCurrent(&a.Alternative); current != p.isCurrent(&b.Alternative) {
		if current {
			return -1
		}
		return 1
	}
	x, y := ProbabilityOf(&a.Alternative), ProbabilityOf(&b.Alternative)
	if p.Request.TargetAccuracy > 0 {
		x, y = min(nearlyCertain, x), min(nearlyCertain, y)
	} else {
		x, y = x*a.meanAccuracy, y*b.meanAccuracy
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(*a.PredictedSeconds, *b.PredictedSeconds))
}

// compareExpected returns a negative number if a is better than b, if none may be promised. If the
// target accuracy is unreachable, the expected accuracy within the SLO decides.
func (p *problem) compareExpected(a, b *candidate) int {
	if a.Extrapolated != b.Extrapolated {
		if b.Extrapolated {
			return -1
		}
		return 1
	}
	x, y := ProbabilityOf(&a.Alternative), ProbabilityOf(&b.Alternative)
	if p.Request.TargetAccuracy > 0 && max(x, y) < unreachableTarget {
		x, y = a.sloProbability, b.sloProbability
	}
	x, y = x*max(a.meanAccuracy, tinyAccuracy), y*max(b.meanAccuracy, tinyAccuracy)
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(*a.PredictedSeconds, *b.PredictedSeconds))
}

// tinyAccuracy replaces an unknown accuracy, so that time decides.
const tinyAccuracy = 1e-6

// chooseScore maximizes weight of accuracy · accuracy / largest + weight of time · (1 − time /
// longest) among the candidates that reach the target accuracy with at least the confidence, or
// with the highest probability of any.
func (p *problem) chooseScore(all []candidate) choice {
	w := p.Request.Weights
	var largest, longest, likeliest float64
	for i := range all {
		largest = max(largest, accuracy(&all[i].Alternative))
		longest = max(longest, *all[i].PredictedSeconds)
		likeliest = max(likeliest, all[i].targetProbability)
	}
	best := -1
	for i := range all {
		c, score := &all[i], 0.0
		if largest > 0 {
			score += w.Accuracy * accuracy(&c.Alternative) / largest
		}
		if longest > 0 {
			score += w.Time * (1 - *c.PredictedSeconds/longest)
		}
		c.Score, c.Reason = &score, reasonLowerScore
		if c.targetProbability < min(likeliest, p.Request.Confidence) {
			c.Reason = reasonShort
		} else if best < 0 || score > *all[best].Score {
			best = i
		}
	}
	all[best].Reason = reasonScore
	return choice{best, schemas.Weighted}
}

// exploreFirst chooses the candidate farthest from the tried ones, so that each job extends the
// support of the regressors (maximin design, Johnson et al. 1990). If no candidate or every
// candidate was tried, it chooses the largest batch size with the most CPUs, which is assumed to
// have the shortest epoch. Candidates that will probably miss the SLO come last. If the time
// of some candidates is unknown, one of those is chosen. A running job continues unchanged.
func (p *problem) exploreFirst(all []candidate, hasTime bool) choice {
	for i := range all {
		all[i].Reason = reasonUnknown
		switch {
		case hasTime || p.r.EpochTime == nil:
		case all[i].PredictedSeconds != nil && p.Self == nil:
			all[i].Reason = reasonKnown
		default:
			all[i].Reason = p.of(all[i].Workers).extrapolationReason(&all[i].Alternative)
		}
	}
	best := slices.IndexFunc(all, func(c candidate) bool { return p.isCurrent(&c.Alternative) })
	if best < 0 {
		best = farthest(all, p.Tried, mayKeepSLO)
	}
	if best < 0 {
		best = farthest(all, p.Tried, func(c *candidate) bool { return hasTime || c.PredictedSeconds == nil })
	}
	all[best].Reason = reasonLearn
	return choice{best, schemas.Exploring}
}
