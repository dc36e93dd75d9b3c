package decide

import (
	"math"

	"courier/advisor/cluster"
)

// distance returns the Euclidean distance in doublings. An unknown batch size or number of workers counts
// as 1.
func distance(c, to cluster.BatchAndShape) float64 {
	doublings := func(a, b uint32) float64 { return math.Log2(float64(max(a, 1)) / float64(max(b, 1))) }
	d := math.Hypot(doublings(c.BatchSize, to.BatchSize), doublings(c.CPUs, to.CPUs))
	return math.Hypot(d, doublings(c.Workers, to.Workers))
}

// mayKeepSLO reports whether a candidate has a fair chance to keep its SLO.
func mayKeepSLO(c *candidate) bool { return ProbabilityOf(&c.Alternative) >= LikelyMissed }

// farthest returns the index of the allowed candidate that is farthest from the tried
// configurations; -1 if none is allowed. The shortest epoch breaks ties.
func farthest(all []candidate, tried []cluster.BatchAndShape, isAllowed func(*candidate) bool) int {
	best, highest := -1, -1.0
	for i := range all {
		c := &all[i]
		if !isAllowed(c) {
			continue
		}
		d := math.Inf(1) // to the nearest one
		for _, t := range tried {
			d = min(d, distance(cluster.BatchAndShape{BatchSize: c.BatchSize, CPUs: c.CPUs, Workers: c.Workers}, t))
		}
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
