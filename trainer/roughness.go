package trainer

import (
	"math"
	"slices"
	"strings"
)

const (
	roughJobs  = 31 // that tell how rough it is
	roughLeast = 20 // of them before anything is said
	roughShare = 2  // of the calibrated deviation is no luck any more

	// normalMedian is the median of |x| of a standard normal x.
	normalMedian = 0.6744897501960817
)

// roughness tells whether jobs that follow each other, of one model on the same
// nodes, differ by more than calibration says: runs that were measured one after the
// other on a quiet machine tell little of what is usual on a busy one. Taken for a
// shift each time, the noise would alarm without end, and each alarm costs a fit. A
// lasting shift is one difference of many, and does not count (von Neumann 1941, with
// the median in place of the mean).
type roughness struct {
	last  *lru[roughKey, float64]
	steps []float64 // ring of |differences| / sqrt(2), in calibrated standard deviations
	next  int
	above int // of them, beyond roughShare
}

type roughKey struct{ model, nodes string }

func (r *roughness) add(o *Outcome, z float64) {
	k := roughKey{model: o.Model}
	if len(o.Nodes) == 1 {
		k.nodes = o.Nodes[0]
	} else {
		k.nodes = strings.Join(o.Nodes, ",")
	}
	before, known := r.last.get(k)
	r.last.put(k, z)
	if !known {
		return
	}
	step := math.Abs(z-before) / math.Sqrt2
	if len(r.steps) < roughJobs {
		r.steps = append(r.steps, step)
	} else {
		if r.steps[r.next] > roughShare*normalMedian {
			r.above--
		}
		r.steps[r.next] = step
		r.next = (r.next + 1) % roughJobs
	}
	if step > roughShare*normalMedian {
		r.above++
	}
}

// factor is how many times as large as calibrated the deviation is; 1 unless it is
// clearly larger.
func (r *roughness) factor() float64 {
	if len(r.steps) < roughLeast || 2*r.above <= len(r.steps) {
		return 1
	}
	steps := slices.Clone(r.steps)
	slices.Sort(steps)
	return steps[len(steps)/2] / normalMedian
}
