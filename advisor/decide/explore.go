package decide

import (
	"math"

	"courier/advisor/cluster"
)

// distance returns the Euclidean distance in doublings. An unknown batch size counts as 1.
func distance(c, to cluster.BatchAndCPUs) float64 {
	return math.Hypot(math.Log2(float64(max(c.BatchSize, 1))/float64(max(to.BatchSize, 1))),
		math.Log2(float64(c.CPUs)/float64(to.CPUs)))
}

// nearest returns the distance to the nearest of some configurations, +Inf without any.
func nearest(c cluster.BatchAndCPUs, to []cluster.BatchAndCPUs) float64 {
	lowest := math.Inf(1)
	for _, t := range to {
		lowest = min(lowest, distance(c, t))
	}
	return lowest
}

// mayKeepSLO reports whether a candidate has a fair chance to keep its SLO.
func mayKeepSLO(c *candidate) bool { return ProbabilityOf(&c.Alternative) >= LikelyMissed }

func isAny(*candidate) bool { return true }

// farthest returns the index of the allowed candidate that is farthest from the tried
// configurations; -1 if none is allowed. The shortest epoch breaks ties.
func farthest(all []candidate, tried []cluster.BatchAndCPUs, isAllowed func(*candidate) bool) int {
	best, highest := -1, -1.0
	for i := range all {
		c := &all[i]
		if !isAllowed(c) {
			continue
		}
		d := nearest(cluster.BatchAndCPUs{BatchSize: c.BatchSize, CPUs: c.CPUs}, tried)
		if best >= 0 && d == highest {
			b := &all[best]
			if c.BatchSize > b.BatchSize || c.BatchSize == b.BatchSize && c.CPUs > b.CPUs {
				best = i
			}
		} else if d > highest {
			best, highest = i, d
		}
	}
	return best
}
