package advisor

import (
	"math"
	"slices"

	"courier/schemas"
)

// Configuration is what an alternative fixes and an epoch teaches about.
type Configuration struct{ BatchSize, CPUs uint32 }

// tried are the configurations of each model that the log has an epoch of. The
// lists are never changed in place, so that questions may keep them.
type tried map[string][]Configuration

// keptTried bounds the list of a model; more would not be learnt any sooner.
const keptTried = 256

func (t tried) add(s *schemas.Setting) {
	c, list := Configuration{s.BatchSize, s.CPUs}, t[s.Model]
	if len(list) < keptTried && !slices.Contains(list, c) {
		t[s.Model] = append(slices.Clip(list), c)
	}
}

// distance of two configurations, in doublings.
func (c Configuration) distance(to Configuration) float64 {
	return math.Hypot(math.Log2(float64(c.BatchSize)/float64(to.BatchSize)), math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// exploreFirst takes the alternative that teaches most: the one farthest from
// what was tried, so that each job widens what is known (maximin design, Johnson
// et al. 1990). Where nothing was tried, or nothing is left to try, it is the
// one with the shortest epoch: by the paper that of the largest batch with the
// most CPUs.
func exploreFirst(q *Question, a *schemas.Advice) int {
	a.Decision = schemas.Exploring
	best, farthest := 0, -1.0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		alt.Reason = reasonUnknown
		nearest := math.Inf(1)
		for _, t := range q.Tried {
			nearest = min(nearest, Configuration{alt.BatchSize, alt.CPUs}.distance(t))
		}
		b := &a.Alternatives[best]
		faster := alt.BatchSize > b.BatchSize || alt.BatchSize == b.BatchSize && alt.CPUs > b.CPUs
		if nearest > farthest || nearest == farthest && faster {
			best, farthest = i, nearest
		}
	}
	a.Alternatives[best].Reason = reasonLearn
	return best
}
