package advisor

import (
	"math"
	"slices"

	"courier/schemas"
)

// Configuration is what an alternative fixes and an epoch teaches about.
type Configuration struct{ BatchSize, CPUs uint32 }

// distance of two configurations, in doublings.
func (c Configuration) distance(to Configuration) float64 {
	return math.Hypot(math.Log2(float64(c.BatchSize)/float64(to.BatchSize)),
		math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// nearest is the distance to the closest of some configurations.
func (c Configuration) nearest(to []Configuration) float64 {
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
			a.Alternatives[i].Reason = d.beyond(&a.Alternatives[i])
		}
	}
	best := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool {
		return q.runs(&alt)
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
func mayKeepSLO(alt *schemas.Alternative) bool { return probability(alt) >= hopeless }

// farthest returns the alternative farthest from what was tried among those that
// may be taken; of several, the one with the shortest epoch. -1: none may.
func farthest(
	all []schemas.Alternative, tried []Configuration, may func(*schemas.Alternative) bool,
) int {
	best, most := -1, -1.0
	for i := range all {
		alt := &all[i]
		if !may(alt) {
			continue
		}
		d := Configuration{alt.BatchSize, alt.CPUs}.nearest(tried)
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
const mostProbes = 3

// probes plans the epochs that teach most about a model of which nothing is known: the
// chosen configuration first, then each time the one farthest from all before it. It
// returns none where all configurations have been tried.
func (d *decision) probes(a *schemas.Advice) (plan []schemas.ProbeEpoch) {
	tried := slices.Clone(d.q.Tried)
	next := slices.IndexFunc(a.Alternatives, func(alt schemas.Alternative) bool {
		return alt.BatchSize == a.Chosen.BatchSize && alt.CPUs == a.Chosen.CPUs
	})
	for len(plan) < mostProbes && next >= 0 {
		alt := &a.Alternatives[next]
		c := Configuration{alt.BatchSize, alt.CPUs}
		if c.nearest(tried) == 0 {
			break
		}
		p := schemas.ProbeEpoch{BatchSize: alt.BatchSize, CPUs: alt.CPUs, Epochs: 1}
		plan, tried = append(plan, p), append(tried, c)
		next = farthest(a.Alternatives, tried, func(*schemas.Alternative) bool { return true })
	}
	return plan
}
