package regress

import (
	"math"
	"math/bits"
)

// growingLeaf is a leaf of a growing tree, which may be split.
type growingLeaf struct {
	rows   []int32 // a part of booster.rows, in order
	depth  int
	sums   *pullHistogram // nil if it must not be split
	best   histogramCut
	bounds valueLimits
	parent int32 // -1 for the root
	left   bool  // it is the left child
}

// grow splits the leaf with the largest gain until no leaf gains or there are enough leaves. As in
// LightGBM the left child takes over the number of the leaf, the right one gets the next number.
func (b *booster) grow() {
	for _, s := range b.growing {
		b.release(s.sums)
	}
	b.nodes, b.lastBins = b.nodes[:0], b.lastBins[:0]
	b.growing = append(b.growing[:0], growingLeaf{
		rows:   b.rows,
		bounds: valueLimits{math.Inf(-1), math.Inf(1)},
		parent: -1,
	})
	limit := b.options.Leaves
	if limit == 0 {
		limit = maxLeaves
	}
	if root := &b.growing[0]; b.canSplit(root) {
		root.sums = b.addUp(root.rows)
		b.search(root)
	}
	for len(b.growing) < limit {
		best := 0
		for k := range b.growing {
			if b.growing[k].best.gain > b.growing[best].best.gain*(1+1e-12) {
				best = k
			}
		}
		if !b.growing[best].best.found {
			return
		}
		b.split(best, len(b.growing)+1 < limit)
	}
}

// canSplit reports whether a leaf may be split.
func (b *booster) canSplit(s *growingLeaf) bool {
	return len(s.rows) >= 2*b.options.MinLeaf && (b.options.MaxDepth == 0 ||
		s.depth < b.options.MaxDepth)
}

// split replaces leaf k by a node and two leaves. It sums the smaller side; the sums of the larger
// side are the difference to the parent's.
func (b *booster) split(k int, more bool) {
	s := b.growing[k]
	at, last := int32(len(b.nodes)), b.bins.cut(s.best.feature, s.best.last, s.best.next)
	b.nodes = append(b.nodes, treeNode{
		feature:   int32(s.best.feature),
		threshold: b.bins.cuts[s.best.feature][last],
		gain:      b.restoreGain(s.best.gain),
		left:      int32(-1 - k),
		right:     int32(-1 - len(b.growing)),
	})
	b.lastBins = append(b.lastBins, uint8(last))
	switch {
	case s.parent < 0:
	case s.left:
		b.nodes[s.parent].left = at
	default:
		b.nodes[s.parent].right = at
	}
	middle := b.partition(s.rows, s.best.feature, uint8(last))
	left := growingLeaf{
		rows:   s.rows[:middle],
		depth:  s.depth + 1,
		bounds: s.bounds,
		parent: at,
		left:   true,
	}
	right := growingLeaf{rows: s.rows[middle:], depth: s.depth + 1, bounds: s.bounds, parent: at}
	b.applySign(&left, &right, s.best.feature)
	small, large := &left, &right
	if len(small.rows) > len(large.rows) {
		small, large = large, small
	}
	if more && b.canSplit(large) {
		small.sums, large.sums = b.addUp(small.rows), s.sums
		large.sums.sub(small.sums, b.bins.low)
		b.search(large)
		b.search(small)
	} else {
		b.release(s.sums)
	}
	b.growing[k] = left
	b.growing = append(b.growing, right)
}

// applySign separates both sides of a split by a monotone feature at the midpoint of their
// predictions, as XGBoost and LightGBM do. If the gradient selected a split whose exact values
// violate the sign, both sides get that midpoint.
func (b *booster) applySign(left, right *growingLeaf, feature int) {
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

// search finds the best cut of a leaf, or releases its sums if there is none.
func (b *booster) search(s *growingLeaf) {
	if b.canSplit(s) {
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

// addUp sums examples, on several threads if there are many.
func (b *booster) addUp(rows []int32) *pullHistogram {
	sums := b.newHistogram()
	b.parts = b.parts[:0]
	least := 1 << 17 / len(b.sign)
	for range min(b.options.Threads, len(rows)/max(least, 1)) - 1 {
		b.parts = append(b.parts, b.newHistogram())
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

// newHistogram returns an empty histogram; release returns it to the pool.
func (b *booster) newHistogram() *pullHistogram {
	if n := len(b.idle); n > 0 {
		t := b.idle[n-1]
		b.idle = b.idle[:n-1]
		t.clear(b.bins.low)
		return t
	}
	return newPullHistogram(len(b.sign), b.weight != nil)
}

func (b *booster) release(t *pullHistogram) {
	if t != nil {
		b.idle = append(b.idle, t)
	}
}

// restoreGain returns a gain in squared units of the pulls (with Squared, of the target).
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

// partition moves the rows that go left to the front, keeping the order on both sides, and returns
// their number. It writes each row to both sides and advances one, because a branch would be
// mispredicted half of the time. Each thread partitions a range; then the left parts are moved
// together, and the right ones after them.
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

// histogram holds an integer sum for each feature and bin. The upper bits of an entry are the sum
// of the pulls of its examples (see loss.pull) in a small unit, the lower countBits their number,
// so that one addition does both (Shi et al. 2022 pack gradients likewise). Integer sums are exact
// in any order: any number of threads gives the same tree, and the difference of two histograms has
// no error.
type histogram [][maxBins + 1]int64

const (
	countBits = 24
	countMask = 1<<countBits - 1
)

// add adds examples to their bins. Codes are by example, then feature.
func (h histogram) add(rows []int32, codes []uint8, packed []int64) {
	features := len(h)
	for _, row := range rows {
		value := packed[row]
		at := int(row) * features
		here := codes[at : at+features]
		h := h[:len(here)]
		for f, code := range here {
			h[f][code] += value
		}
	}
}

// sub and plus visit the bins of each feature.
func (h histogram) sub(o histogram, bins [][]float64) {
	for f := range h {
		to, from := h[f][:len(bins[f])], o[f][:len(bins[f])]
		for b, value := range from {
			to[b] -= value
		}
	}
}

func (h histogram) plus(o histogram, bins [][]float64) {
	for f := range h {
		to, from := h[f][:len(bins[f])], o[f][:len(bins[f])]
		for b, value := range from {
			to[b] += value
		}
	}
}

func (h histogram) clear(bins [][]float64) {
	for f := range h {
		clear(h[f][:len(bins[f])])
	}
}

// packing converts numbers to entries of histograms. None of n numbers may exceed most. The unit is
// chosen so that the sum of n numbers just fits 39 bits and a sign. It is a power of two, so that
// ones, halves and the like are not rounded.
type packing struct{ unit, perUnit float64 }

func newPacking(n int, most float64) packing {
	if most < 1e-250 { // all residuals are 0
		return packing{}
	}
	steps := float64(int64(1) << (63 - countBits - bits.Len(uint(n))))
	_, exponent := math.Frexp(most)
	unit := math.Ldexp(1, exponent) / steps
	return packing{unit: unit, perUnit: 1 / unit}
}

func (p packing) pack(x float64) int64 {
	return int64(math.RoundToEven(x*p.perUnit))<<countBits + 1
}

// pullHistogram holds the sums of the examples of a leaf. If all weights are 1, the number of
// examples is their weight, and weights is nil.
type pullHistogram struct{ pulls, weights histogram }

func newPullHistogram(features int, weighted bool) *pullHistogram {
	t := &pullHistogram{pulls: make(histogram, features)}
	if weighted {
		t.weights = make(histogram, features)
	}
	return t
}

func (t *pullHistogram) sub(o *pullHistogram, bins [][]float64) {
	t.pulls.sub(o.pulls, bins)
	if t.weights != nil {
		t.weights.sub(o.weights, bins)
	}
}

func (t *pullHistogram) plus(o *pullHistogram, bins [][]float64) {
	t.pulls.plus(o.pulls, bins)
	if t.weights != nil {
		t.weights.plus(o.weights, bins)
	}
}

func (t *pullHistogram) clear(bins [][]float64) {
	t.pulls.clear(bins)
	if t.weights != nil {
		t.weights.clear(bins)
	}
}

// histogramCut is a possible split of a leaf.
type histogramCut struct {
	gain          float64 // in squared units of pulls per unit of weight
	feature, last int     // bins up to last go left
	next          int     // the first bin with examples on the right
	found         bool
}

// whole returns the sum of all bins, which is the same for every feature.
func (t *pullHistogram) whole(bins int) (whole pullTotal) {
	for _, here := range t.pulls[0][:bins] {
		whole.pulls += here
	}
	whole.weights = whole.pulls & countMask << countBits
	if t.weights != nil {
		whole.weights = 0
		for _, here := range t.weights[0][:bins] {
			whole.weights += here
		}
	}
	return whole
}

// pullTotal is a sum over some bins of a pullHistogram.
type pullTotal struct{ pulls, weights int64 }

// search returns the best cut of one feature,
//
//	gain = WL WR / W (GL/WL - GR/WR)² = (GL W - G WL)² / (W WL WR)
//
// with G the sum of pulls and W the weight of a side: the reduction of the squared distance between
// a leaf's pulls and their mean (Friedman 2001, equation 35). sign is the sign of a monotone
// feature; at least minimum examples, 1 or more, remain on both sides. The cut after an empty bin
// equals the one before it and gains no more, so no branch tests for it. It divides only if a cut
// is better apart from rounding.
func (t *pullHistogram) search(
	feature, bins, minimum, sign int, whole pullTotal,
) (best histogramCut) {
	pulls, weights := t.pulls[feature][:bins], []int64(nil)
	if t.weights != nil {
		weights = t.weights[feature][:bins]
	}
	count := int(whole.pulls & countMask)
	g, w := float64(whole.pulls>>countBits), float64(whole.weights>>countBits)
	limit, nearly := 0.0, 0.0
	left, heavy := int64(0), int64(0)
	for b, here := range pulls {
		left += here
		taken := int(left & countMask)
		wl := float64(taken)
		if weights != nil {
			heavy += weights[b]
			wl = float64(heavy >> countBits)
		}
		if taken < minimum {
			continue
		}
		if count-taken < minimum {
			break
		}
		d, sides := float64(left>>countBits)*w-g*wl, wl*(w-wl)
		if d*d <= nearly*sides {
			continue
		}
		gain := d * d / sides // NaN or infinite if a side weighs nothing
		// With d < 0 the left side is below the right one.
		if gain > limit && gain <= math.MaxFloat64 && !(sign > 0 && d > 0) && !(sign < 0 && d < 0) {
			best = histogramCut{gain: gain / w, feature: feature, last: b, found: true}
			limit = gain * (1 + 1e-12) // in a tie the first cut wins
			nearly = gain
		}
	}
	if best.found {
		for best.next = best.last + 1; pulls[best.next]&countMask == 0; best.next++ {
		}
	}
	return best
}
