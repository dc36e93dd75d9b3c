package regress

import "math"

// sprout is a leaf of a growing tree, which may be split.
type sprout struct {
	rows   []int32 // a part of booster.rows, in order
	depth  int
	sums   *tally // nil where it is not to be split
	best   cut
	bounds limits
	parent int32 // the node above, -1 for the root
	left   bool  // which child of it
}

// grow splits again and again the leaf that gains most, until no leaf gains or
// there are enough. Left children take over the number of the leaf, right ones
// get the next: LightGBM's way.
func (b *booster) grow() {
	for _, s := range b.sprouts {
		b.release(s.sums)
	}
	b.nodes, b.lasts = b.nodes[:0], b.lasts[:0]
	b.sprouts = append(b.sprouts[:0], sprout{rows: b.rows, bounds: limits{math.Inf(-1), math.Inf(1)}, parent: -1})
	limit := b.options.Leaves
	if limit == 0 {
		limit = mostLeaves
	}
	if root := &b.sprouts[0]; b.splits(root) {
		root.sums = b.tally(root.rows)
		b.search(root)
	}
	for len(b.sprouts) < limit {
		best := 0
		for k := range b.sprouts {
			if b.sprouts[k].best.gain > b.sprouts[best].best.gain*(1+1e-12) {
				best = k
			}
		}
		if !b.sprouts[best].best.found {
			return
		}
		b.split(best, len(b.sprouts)+1 < limit)
	}
}

// splits says whether a leaf is large and high enough to be split.
func (b *booster) splits(s *sprout) bool {
	return len(s.rows) >= 2*b.options.MinLeaf && (b.options.MaxDepth == 0 || s.depth < b.options.MaxDepth)
}

// split makes a node of leaf k and a leaf of each side. The sums of the smaller
// side are added up, those of the larger are what is left of the parent's.
func (b *booster) split(k int, more bool) {
	s := b.sprouts[k]
	at, last := int32(len(b.nodes)), b.bins.cut(s.best.feature, s.best.last, s.best.next)
	b.nodes = append(b.nodes, node{feature: int32(s.best.feature), threshold: b.bins.cuts[s.best.feature][last],
		gain: b.restoreGain(s.best.gain), left: int32(-1 - k), right: int32(-1 - len(b.sprouts))})
	b.lasts = append(b.lasts, uint8(last))
	switch {
	case s.parent < 0:
	case s.left:
		b.nodes[s.parent].left = at
	default:
		b.nodes[s.parent].right = at
	}
	middle := b.partition(s.rows, s.best.feature, uint8(last))
	left := sprout{rows: s.rows[:middle], depth: s.depth + 1, bounds: s.bounds, parent: at, left: true}
	right := sprout{rows: s.rows[middle:], depth: s.depth + 1, bounds: s.bounds, parent: at}
	b.bind(&left, &right, s.best.feature)
	small, large := &left, &right
	if len(small.rows) > len(large.rows) {
		small, large = large, small
	}
	if more && b.splits(large) {
		small.sums, large.sums = b.tally(small.rows), s.sums
		large.sums.sub(small.sums, b.bins.low)
		b.search(large)
		b.search(small)
	} else {
		b.release(s.sums)
	}
	b.sprouts[k] = left
	b.sprouts = append(b.sprouts, right)
}

// bind keeps both sides of a split by a monotone feature apart by the middle of
// what they would predict, as XGBoost and LightGBM do. Where the gradient chose
// a split whose exact values break the order, both sides get that middle.
func (b *booster) bind(left, right *sprout, feature int) {
	if b.sign[feature] == 0 {
		return
	}
	below := left.bounds.clip(b.loss.value(b.masses(0, left.rows)))
	above := right.bounds.clip(b.loss.value(b.masses(0, right.rows)))
	middle := below/2 + above/2
	if b.sign[feature] > 0 {
		left.bounds.high, right.bounds.low = middle, middle
	} else {
		left.bounds.low, right.bounds.high = middle, middle
	}
}

// search finds a leaf's best cut, or gives its sums back.
func (b *booster) search(s *sprout) {
	if b.splits(s) {
		whole := s.sums.whole(len(b.bins.low[0]))
		for _, f := range b.features {
			c := s.sums.search(f, len(b.bins.low[f]), b.options.MinLeaf, b.sign[f], whole)
			if c.found && c.gain > s.best.gain*(1+1e-12) {
				s.best = c
			}
		}
	}
	if !s.best.found {
		b.release(s.sums)
		s.sums = nil
	}
}

// tally adds up examples; many of them on several threads.
func (b *booster) tally(rows []int32) *tally {
	sums := b.take()
	b.parts = b.parts[:0]
	least := 1 << 17 / len(b.sign)
	for range min(b.options.Threads, len(rows)/max(least, 1)) - 1 {
		b.parts = append(b.parts, b.take())
	}
	parallel(b.options.Threads, len(rows), least, func(run, from, to int) {
		part := sums
		if run > 0 {
			part = b.parts[run-1]
		}
		part.pulls.add(rows[from:to], b.bins.rows, b.pulls)
		if b.weight != nil {
			part.weights.add(rows[from:to], b.bins.rows, b.weights)
		}
	})
	for _, part := range b.parts {
		sums.plus(part, b.bins.low)
		b.release(part)
	}
	return sums
}

// take returns an empty tally; release gives one back.
func (b *booster) take() *tally {
	if n := len(b.idle); n > 0 {
		t := b.idle[n-1]
		b.idle = b.idle[:n-1]
		t.clear(b.bins.low)
		return t
	}
	return newTally(len(b.sign), b.weight != nil)
}

func (b *booster) release(t *tally) {
	if t != nil {
		b.idle = append(b.idle, t)
	}
}

// restoreGain turns a gain into squared units of the pulls, for Squared those of
// the target.
func (b *booster) restoreGain(gain float64) float64 {
	gain *= b.pulling.unit * b.pulling.unit
	if b.weight != nil {
		gain /= b.weighting.unit
	}
	if b.loss.criterion == Squared || b.loss.criterion == Huber {
		gain = gain / b.scale / b.scale
	}
	return min(gain, math.MaxFloat64)
}

// partition brings the rows that go left to the front, in order on both sides,
// and returns their number. Each row is written to both sides and counted on
// one, because a branch would be guessed wrong half of the time. Threads divide
// a run each; then the left parts move together, and the right ones after them.
func (b *booster) partition(rows []int32, feature int, last uint8) int {
	codes := b.bins.codes[feature]
	lefts := make([]int, b.options.Threads)
	runs := parallel(b.options.Threads, len(rows), 1<<15, func(run, from, to int) {
		part, spare := rows[from:to], b.spare[from:to]
		left, right := 0, 0
		for _, row := range part {
			goes := 0
			if codes[row] <= last {
				goes = 1
			}
			part[left], spare[right] = row, row
			left += goes
			right += 1 - goes
		}
		lefts[run] = left
	})
	middle := 0
	for run, left := range lefts[:runs] {
		from, _ := part(run, runs, len(rows))
		middle += copy(rows[middle:], rows[from:from+left])
	}
	at := middle
	for run, left := range lefts[:runs] {
		from, to := part(run, runs, len(rows))
		at += copy(rows[at:], b.spare[from:to-left])
	}
	return middle
}
