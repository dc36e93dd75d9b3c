package regress

import (
	"math"
	"math/bits"
)

// searcher finds the best cut of a node; there is one for each criterion, and
// one of it for each goroutine.
type searcher interface {
	// enter prepares a node, whose items sum up to whole, and returns its loss.
	enter(items []item, whole pair) (loss float64)
	// search offers every cut between bins of a feature that leaves enough
	// examples on both sides, from low values to high ones, and returns false
	// where all examples are in one bin. Codes are the bins of all examples of
	// the fit, bins is their number.
	search(items []item, codes []uint8, bins int, to *contest) (varied bool)
}

// split is a cut of a node.
type split struct {
	gain        float64
	feature     int
	last        int     // bins up to this one go left
	left, right float64 // predictions of both sides, only in a fit with signs
}

// contest holds the best split of a node so far. Among gains that differ only
// by rounding the first one offered wins.
type contest struct {
	*growth
	best      split
	found     bool
	tolerance float64
	feature   int // whose cuts are offered
	bounds    limits
}

// offer proposes a cut: the last bin on its left, the first one with examples
// on its right, and what both sides would predict, where signs need it.
func (c *contest) offer(gain float64, left, right int, below, above float64) {
	if gain > c.best.gain+c.tolerance {
		c.accept(gain, left, right, below, above)
	}
}

func (c *contest) accept(gain float64, left, right int, below, above float64) {
	if c.bound {
		below, above = c.bounds.clip(c.restore(below)), c.bounds.clip(c.restore(above))
		if s := c.sign[c.feature]; s > 0 && below > above || s < 0 && below < above {
			return
		}
	}
	last := c.bins.cut(c.feature, left, right)
	c.best, c.found = split{gain: gain, feature: c.feature, last: last, left: below, right: above}, true
}

// pair is a weight and a weighted sum of targets.
type pair struct{ w, s float64 }

func (p *pair) add(o pair) { p.w += o.w; p.s += o.s }
func (p *pair) sub(o pair) { p.w -= o.w; p.s -= o.s }

// masked is p where i < at, else nothing. It has no branch: half of the time
// the processor would guess wrong.
func (p pair) masked(i, at int) pair {
	mask := uint64(int64(i-at) >> 63)
	return pair{math.Float64frombits(math.Float64bits(p.w) & mask), math.Float64frombits(math.Float64bits(p.s) & mask)}
}

// squaredSearch finds the cut with the smallest sum of squared differences from
// the means of both sides:
//
//	gain = WL WR / W (SL/WL - SR/WR)²
//
// with W the weight and S the weighted sum of targets of a side. Targets are
// taken from the node's mean, so that no digits are lost in differences.
type squaredSearch struct {
	minimum int // fewest examples on a side
	mean    float64
	whole   pair
	bins    [maxBins + 1]squaredBin // empty between searches
	used    binSet
}

type squaredBin struct {
	pair
	count int
}

func (q *squaredSearch) enter(items []item, whole pair) (loss float64) {
	q.mean, q.whole = whole.s/whole.w, pair{w: whole.w}
	for i := range items {
		y := items[i].y - q.mean
		q.whole.s += items[i].w * y
		loss += items[i].w * y * y
	}
	return loss
}

func (q *squaredSearch) search(items []item, codes []uint8, bins int, to *contest) bool {
	q.used.begin(len(items), bins)
	for i := range items {
		it := &items[i]
		c := codes[it.row]
		b := &q.bins[c]
		b.w += it.w
		b.s += it.w * (it.y - q.mean)
		b.count++
		q.used.add(c)
	}
	left, taken, last, lastCount := pair{}, 0, -1, 0
	for b := q.used.next(-1); b >= 0; b = q.used.next(b) {
		here := q.bins[b]
		if here.count == 0 {
			continue
		}
		q.bins[b] = squaredBin{}
		if right := (pair{q.whole.w - left.w, q.whole.s - left.s}); taken >= q.minimum && len(items)-taken >= q.minimum && right.w > 0 {
			below, above := left.s/left.w, right.s/right.w
			to.offer(left.w*right.w/q.whole.w*(above-below)*(above-below), last, b, below+q.mean, above+q.mean)
		}
		left.add(here.pair)
		taken += here.count
		last, lastCount = b, here.count
	}
	return taken > lastCount
}

// binSet tells which bins have items, so that a small node looks at few bins.
type binSet struct {
	bits  [4]uint64
	whole bool // all bins are looked at
}

// begin prepares for n items in some bins. With many items nothing is noted:
// most bins have some.
func (s *binSet) begin(n, bins int) {
	s.whole = n >= bins/4
	for i := range s.bits {
		s.bits[i] = 0
		if s.whole {
			s.bits[i] = ^uint64(0) >> max(0, min(64, (i+1)*64-bins))
		}
	}
}

func (s *binSet) add(code uint8) {
	if !s.whole {
		s.bits[code>>6] |= 1 << (code & 63)
	}
}

// next returns the first bin after b that may have items, or -1.
func (s *binSet) next(b int) int {
	b++
	for word := b >> 6; word < len(s.bits); word++ {
		if rest := s.bits[word] >> (b & 63); rest != 0 {
			return b + bits.TrailingZeros64(rest)
		}
		b = (word + 1) << 6
	}
	return -1
}

// objective is LightGBM's name for a criterion.
func (c Criterion) objective() string {
	switch c {
	case Squared:
		return "regression"
	case Absolute:
		return "regression_l1"
	}
	return string(c)
}
