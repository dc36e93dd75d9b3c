package regress

import (
	"math"
	"math/bits"
)

// squaredSearch finds the cut with the smallest sum of squared differences from
// the means of both sides:
//
//	gain = WL WR / W (SL/WL - SR/WR)² = (SL W - S WL)² / (W WL WR)
//
// with W the weight and S the weighted sum of targets of a side. Both are integer sums in small
// units. They are exact in any order, and the sums of one side are the sums of the node minus
// the sums of the other side. A large node that considers all features therefore sums the smaller
// half of its items only; a small one keeps its items sorted by each feature (see ranks). Targets
// are relative to the node's mean, to keep their precision.
type squaredSearch struct {
	minimum int // minimum number of examples on a side
	large   int // items of a node that has its own sums; at most 255
	bins    *binned
	units
	unit    float64 // of gains
	perUnit float64 // 1/unit
	plot    *nodeItems
	moments []itemMoment // of what the tree has drawn, by number
	items   []itemMoment // of the node, or of the node at which the ranks began
	whole   itemMoment   // of the node, S relative to its mean
	below   itemMoment   // left side of the best cut
	mean    int64        // of the node, in units of S per unit of W
	heavy   float64      // W of the node
	pulled  float64      // S of the node
	gaining float64      // unit of gains per W of the node
	perGain float64      // 1/gaining
	own     binMoments   // sums of a large node, otherwise nil
	small   bool         // fewer than large items: they are sorted
	ranks   ranks
	from    int             // first place of a small node in the ranks
	local   [256]itemMoment // of those items by number, S relative to the node's mean
	near    bool            // local is set
	idle    []binMoments
}

// binMoments are the sums of the items in each bin of each feature. The array is longer than
// needed: with 256 entries the same bins of all features would be 4096 bytes apart and share cache
// lines.
type binMoments [][maxBins + 5]itemMoment

// itemMoment is S, and W packed with the number of examples as in a histogram.
type itemMoment struct{ s, w int64 }

func (m *itemMoment) add(o itemMoment) { m.s += o.s; m.w += o.w }
func (m *itemMoment) sub(o itemMoment) { m.s -= o.s; m.w -= o.w }

func newSquaredSearch(g *growth) *squaredSearch {
	unit := 1 / g.pulling / g.pulling / g.weighting.unit
	return &squaredSearch{
		minimum: g.options.MinLeaf,
		large:   max(8, g.bins.maxBins()*2/3),
		bins:    g.bins,
		moments: make([]itemMoment, len(g.target)),
		items:   make([]itemMoment, len(g.target)),
		ranks:   newRanks(len(g.bins.codes)),
		units:   g.units,
		unit:    unit,
		perUnit: 1 / unit,
	}
}

// units are the units of integer sums.
type units struct {
	pulling   float64 // of S in 1
	perPull   float64 // 1/pulling, exact because it is a power of two
	weighting packing // of W
	minSpread float64 // a billion units of S per example
}

// newUnits returns units in which the sums of all targets fit.
func newUnits(y []float64, heaviest float64) units {
	farthest := 0.0
	for _, y := range y {
		farthest = max(farthest, math.Abs(y))
	}
	_, exponent := math.Frexp(heaviest * farthest)
	pulling := math.Ldexp(1, 62-bits.Len(uint(len(y)))-exponent)
	return units{
		pulling:   pulling,
		perPull:   1 / pulling,
		weighting: newPacking(len(y), heaviest),
		minSpread: 1e9 / pulling,
	}
}

// moment returns the contribution of an item to its bins. Weight 0 counts as the smallest weight.
func (u *units) moment(it *drawnItem) itemMoment {
	return itemMoment{int64(it.w * it.y * u.pulling), max(u.weighting.pack(it.w), 1<<countBits+1)}
}

// weigh and pull return W and S in units of weights and targets.
func (u *units) weigh(m itemMoment) float64 { return float64(m.w>>countBits) * u.weighting.unit }
func (u *units) pull(m itemMoment) float64  { return float64(m.s) * u.perPull }

// beginNode limits the gain by the range of the targets: a quarter of its square times the weight
// (Popoviciu 1935); with two items every split gains that. Gains count as equal if they differ by
// less than a relative and a tiny absolute amount.
func (q *squaredSearch) beginNode(p *nodeItems, known *keptSums) (loss, noise float64) {
	q.release(q.own)
	q.plot, q.own, q.whole, q.from = p, known.sums, known.whole, known.from
	q.small, q.near = known.sums == nil && len(p.items) < q.large, false
	if known.sums == nil && !q.small {
		q.own = q.newSums()
	}
	if !known.filled() {
		q.sum(p.items)
	}
	q.mean = q.whole.s / (q.whole.w >> countBits)
	q.whole.s -= q.mean * (q.whole.w >> countBits)
	q.heavy, q.pulled = float64(q.whole.w>>countBits), float64(q.whole.s)
	q.gaining, q.perGain = q.unit/q.heavy, q.heavy*q.perUnit
	first, last := p.item(0), p.item(len(p.items)-1)
	share := p.whole.w / 4
	if len(p.items) == 2 {
		share = first.w * last.w / p.whole.w
	}
	loss = (last.y - first.y) * (last.y - first.y) * share
	return loss, rounding * rounding * loss
}

func (q *squaredSearch) beginTree(drawn []drawnItem, items []int32) {
	for _, i := range items {
		q.moments[i] = q.moment(&drawn[i])
	}
}

// sum collects the moments of items.
func (q *squaredSearch) sum(items []int32) {
	q.whole, q.items = itemMoment{}, q.items[:len(items)]
	for at, i := range items {
		m := q.moments[i]
		q.items[at] = m
		q.whole.add(m)
	}
}

func (q *squaredSearch) fill(features []int) {
	if q.small {
		for _, f := range features {
			q.ranks.sort(f, q.bins, q.plot.items)
		}
		return
	}
	to := q.own
	if len(features) == 1 {
		f := features[0]
		bins, codes := &to[f], q.bins.codes[f]
		for i, m := range q.items {
			bins[codes[q.plot.items[i]]].add(m)
		}
		return
	}
	for i, m := range q.items {
		codes := q.bins.row(q.plot.items[i])
		for _, f := range features {
			to[f][codes[f]].add(m)
		}
	}
}

func (q *squaredSearch) search(feature int, to *splitSelection) bool {
	if q.small {
		keys := q.ranks.keysOf(feature, q.from, len(q.plot.items))
		if !q.near {
			q.centre(keys)
		}
		return q.searchSorted(keys, to)
	}
	return q.searchSums(q.own[feature][:len(q.bins.low[feature])], to)
}

// searchSums tries the cuts after each bin. The cut after an empty bin equals the one before it and
// gains no more, so no branch tests for it.
func (q *squaredSearch) searchSums(bins []itemMoment, to *splitSelection) (varied bool) {
	n := len(q.plot.items)
	weight, sum := q.heavy, q.pulled
	limit := to.limit * q.perGain
	left := itemMoment{}
	for b := range bins {
		left.add(bins[b])
		taken := int(left.w & countMask)
		if taken == 0 {
			continue
		}
		if taken == n {
			break
		}
		varied = true
		w := left.w >> countBits
		wl := float64(w)
		d := float64(left.s-q.mean*w)*weight - sum*wl
		if d*d <= limit*(wl*(weight-wl)) {
			continue
		}
		if gain := q.gain(left); gain > to.limit {
			next := b + 1
			for bins[next].w == 0 {
				next++
			}
			q.propose(gain, left, b, next, to)
			limit = to.limit * q.perGain
		}
	}
	return varied
}

// centre makes the items of a small node relative to its mean, once for all features.
func (q *squaredSearch) centre(keys []uint16) {
	for _, key := range keys {
		m := q.items[uint8(key)]
		q.local[uint8(key)] = itemMoment{m.s - q.mean*(m.w>>countBits), m.w}
	}
	q.near = true
}

// searchSorted tries the cuts between items sorted by bin. It divides only if a cut is better apart
// from rounding.
func (q *squaredSearch) searchSorted(keys []uint16, to *splitSelection) bool {
	last := keys[len(keys)-1] >> 8
	if keys[0]>>8 == last {
		return false
	}
	weight, sum := q.heavy, q.pulled
	limit := to.limit * q.perGain
	left, key := itemMoment{}, keys[0]
	for _, next := range keys[1:] {
		left.add(q.local[uint8(key)])
		before := key
		key = next
		if before>>8 == next>>8 {
			continue
		}
		wl := float64(left.w >> countBits)
		d := float64(left.s)*weight - sum*wl
		if d*d <= limit*(wl*(weight-wl)) {
			continue
		}
		below := itemMoment{left.s + q.mean*(left.w>>countBits), left.w}
		if gain := q.gain(below); gain > to.limit {
			q.propose(gain, below, int(before>>8), int(next>>8), to)
			limit = to.limit * q.perGain
		}
	}
	return true
}

// gain returns the gain of a cut with some items on its left; see squaredSearch.
func (q *squaredSearch) gain(left itemMoment) float64 {
	w := left.w >> countBits
	wl, sl := float64(w), float64(left.s-q.mean*w)
	d := sl*q.heavy - q.pulled*wl
	return d * d / (wl * (q.heavy - wl)) * q.gaining
}

// propose offers a cut that leaves enough examples on both sides.
func (q *squaredSearch) propose(gain float64, left itemMoment, last, next int, to *splitSelection) {
	taken := int(left.w & countMask)
	if taken < q.minimum || len(q.plot.items)-taken < q.minimum {
		return
	}
	below, above := 0.0, 0.0
	if to.hasSigns {
		weight, sum, w := q.heavy, q.pulled, left.w>>countBits
		wl, sl := float64(w), float64(left.s-q.mean*w)
		mean, perWeight := float64(q.mean), 1/q.pulling/q.weighting.unit
		below, above = (sl/wl+mean)*perWeight, ((sum-sl)/(weight-wl)+mean)*perWeight
	}
	if to.offer(gain, last, next, below, above) {
		q.below = left
	}
}

func (q *squaredSearch) sideSums(sides *[2]keptSums) {
	above := q.uncentred()
	above.sub(q.below)
	sides[0].whole, sides[1].whole = q.below, above
}

func (q *squaredSearch) splitNode(
	by, left int, features []int, wanted [2]bool, sides *[2]keptSums,
) {
	if !wanted[0] && !wanted[1] {
		return
	}
	if q.small { // both stay sorted by each feature
		sides[0].isSorted, sides[0].from = true, q.from
		sides[1].isSorted, sides[1].from = true, q.from+left
		q.ranks.divide(by, q.from, left, len(q.plot.items), features)
		return
	}
	items := [2][]int32{q.plot.items[:left], q.plot.items[left:]}
	small, large := 0, 1
	if len(items[small]) > len(items[large]) {
		small, large = large, small
	}
	if len(items[large]) < q.large || !wanted[large] {
		return // beginNode reuses the sums of the node
	}
	part := q.newSums()
	for _, i := range items[small] {
		m, codes := q.moments[i], q.bins.row(i)
		for _, f := range features {
			part[f][codes[f]].add(m)
		}
	}
	for _, f := range features {
		whole := &q.own[f]
		for b := range q.bins.low[f] {
			whole[b].sub(part[f][b])
		}
	}
	sides[large].sums, q.own = q.own, nil
	if wanted[small] && len(items[small]) >= q.large {
		sides[small].sums = part
	} else {
		q.release(part)
	}
}

// uncentred returns the sum of the items of the node, with S relative to 0.
func (q *squaredSearch) uncentred() itemMoment {
	return itemMoment{q.whole.s + q.mean*(q.whole.w>>countBits), q.whole.w}
}

// newSums returns empty sums; release returns them to the pool.
func (q *squaredSearch) newSums() binMoments {
	if n := len(q.idle); n > 0 {
		s := q.idle[n-1]
		q.idle = q.idle[:n-1]
		for f, low := range q.bins.low {
			clear(s[f][:len(low)])
		}
		return s
	}
	return make(binMoments, len(q.bins.low))
}

func (q *squaredSearch) release(s binMoments) {
	if s != nil {
		q.idle = append(q.idle, s)
	}
}

// ranks hold fewer than 256 items sorted by each feature. When their node is split each side stays
// sorted in its own part, so that the items are sorted once for a whole subtree (Shafer, Agrawal,
// Mehta 1996, SPRINT).
type ranks struct {
	keys  [][2 * 256]uint16 // by feature: bin, then number of the item; half is spare
	spare [256]uint16
	right [256]uint8 // by number of the item: 1 if it goes right
}

// fewSorted is the number of items up to which insertion sort is faster than radix sort.
const fewSorted = 20

func newRanks(features int) ranks { return ranks{keys: make([][2 * 256]uint16, features)} }

// keysOf returns the keys of n items by a feature, starting at an index.
func (r *ranks) keysOf(feature, from, n int) []uint16 {
	return (*[256]uint16)(r.keys[feature][from:])[:n]
}

// sort sorts items by a feature, then by number.
func (r *ranks) sort(feature int, bins *binned, items []int32) {
	codes, keys := bins.codes[feature], r.keys[feature][:len(items)]
	for i, row := range items {
		keys[i] = uint16(codes[row])<<8 | uint16(i)
	}
	if len(keys) > fewSorted {
		r.byDigit(keys, 8)
		r.byDigit(keys, 12)
		return
	}
	for i, key := range keys {
		at := i
		for ; at > 0 && keys[at-1] > key; at-- {
			keys[at] = keys[at-1]
		}
		keys[at] = key
	}
}

// byDigit sorts keys stably by four of their bits.
func (r *ranks) byDigit(keys []uint16, shift uint) {
	var place [16]uint8
	for _, key := range keys {
		place[key>>shift&15]++
	}
	next := uint8(0)
	for digit, count := range place {
		place[digit] = next
		next += count
	}
	for _, key := range keys {
		at := &place[key>>shift&15]
		r.spare[*at] = key
		*at++
	}
	copy(keys, r.spare[:])
}

// divide takes n items starting at an index, and moves the first left of them by one feature to
// the front of all features. It writes each key to both sides and advances one, because a branch would be
// mispredicted half of the time.
func (r *ranks) divide(by, from, left, n int, features []int) {
	for i, key := range r.keysOf(by, from, n) {
		r.right[uint8(key)] = 0
		if i >= left {
			r.right[uint8(key)] = 1
		}
	}
	for _, f := range features {
		if f == by {
			continue
		}
		keys := (*[256]uint16)(r.keys[f][from:])
		left, right := uint8(0), uint8(0)
		for _, key := range keys[:n] {
			goes := r.right[uint8(key)]
			keys[left], r.spare[right] = key, key
			left += 1 - goes
			right += goes
		}
		copy(keys[left:n], r.spare[:right])
	}
}
