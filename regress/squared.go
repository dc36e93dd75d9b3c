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
// with W the weight and S the weighted sum of targets of a side. Both are sums of
// whole numbers, counted in small units: they are exact in any order, and what is
// left of a node's when those of one side are taken away are those of the other.
// So a large node that considers all features adds up the smaller half of its
// items only. Targets are taken from the node's mean, so that no digits are lost.
type squaredSearch struct {
	minimum   int // fewest examples on a side
	large     int // items of a node that has sums of its own
	bins      *binned
	pulling   float64 // units of S in 1
	weighting packing // of W
	unit      float64 // of gains
	plot      *plot
	items     []moment            // of the node
	whole     moment              // of the node, S from its mean
	mean      int64               // of the node, in units of S per unit of W
	own       sums                // of a large node, else nil
	near      [maxBins + 1]moment // of a small node and a feature, empty between searches
	present   []uint8
	used      binSet
	small     bool    // the node has less than large items: they are looked at feature by feature
	block     []uint8 // of a small node, by item and feature: their bins
	sorted    [fewSquared]uint16
	idle      []sums
}

// fewSquared is how many items are sorted faster than put into bins.
const fewSquared = 24

// sums are those of the items in each bin of each feature.
type sums [][maxBins + 1]moment

// moment is S, and W packed with the number of examples as in a histogram.
type moment struct{ s, w int64 }

func (m *moment) add(o moment) { m.s += o.s; m.w += o.w }
func (m *moment) sub(o moment) { m.s -= o.s; m.w -= o.w }

func newSquaredSearch(g *growth) *squaredSearch {
	heaviest, farthest := g.heaviest(), 0.0
	for _, y := range g.y {
		farthest = max(farthest, math.Abs(y))
	}
	_, exponent := math.Frexp(heaviest * farthest)
	q := &squaredSearch{minimum: g.options.MinLeaf, large: largeNode(g.bins.most()), bins: g.bins,
		weighting: newPacking(len(g.target), heaviest), pulling: math.Ldexp(1, 62-bits.Len(uint(len(g.target)))-exponent)}
	q.unit = 1 / q.pulling / q.pulling / q.weighting.unit
	return q
}

// moment is what an item adds to its bins. No weight counts as nothing.
func (q *squaredSearch) moment(it *item) moment {
	return moment{int64(it.w * it.y * q.pulling), max(q.weighting.pack(it.w), 1<<countBits+1)}
}

func (q *squaredSearch) enter(p *plot, known sums) (loss float64) {
	q.release(q.own)
	q.plot, q.own, q.whole, q.items = p, known, moment{}, q.items[:0]
	if known == nil && len(p.items) >= q.large {
		q.own = q.take()
	}
	mean := p.whole.s / p.whole.w
	for i := range p.items {
		it := &p.items[i]
		m := q.moment(it)
		q.items = append(q.items, m)
		q.whole.add(m)
		y := it.y - mean
		loss += it.w * y * y
	}
	if q.small = known == nil && len(p.items) < q.large; q.small {
		q.block = q.block[:0]
		for i := range p.items {
			q.block = append(q.block, q.bins.row(p.items[i].row)...)
		}
	}
	q.mean = q.whole.s / (q.whole.w >> countBits)
	q.whole.s -= q.mean * (q.whole.w >> countBits)
	return loss
}

func (q *squaredSearch) fill(features []int) {
	if q.small {
		return
	}
	to := q.own
	if len(features) == 1 {
		f := features[0]
		bins, codes := &to[f], q.bins.codes[f]
		for i, m := range q.items {
			bins[codes[q.plot.items[i].row]].add(m)
		}
		return
	}
	for i, m := range q.items {
		codes := q.bins.row(q.plot.items[i].row)
		for _, f := range features {
			to[f][codes[f]].add(m)
		}
	}
}

func (q *squaredSearch) search(feature int, to *contest) bool {
	if q.small && len(q.items) <= fewSquared {
		return q.searchFew(feature, to)
	}
	if q.small {
		return q.searchSmall(feature, to)
	}
	q.present = q.present[:0]
	bins := &q.own[feature]
	for b := range q.bins.low[feature] {
		if bins[b].w != 0 {
			q.present = append(q.present, uint8(b))
		}
	}
	q.offer(bins, to)
	return len(q.present) > 1
}

// searchSmall puts the items into bins and remembers which.
func (q *squaredSearch) searchSmall(feature int, to *contest) bool {
	features, bins := len(q.bins.codes), &q.near
	for i, m := range q.items {
		b := q.block[i*features+feature]
		bins[b].add(m)
		q.used.add(b)
	}
	q.present = q.used.drain(q.present[:0])
	q.offer(bins, to)
	for _, b := range q.present {
		bins[b] = moment{}
	}
	return len(q.present) > 1
}

// offer goes over the cuts between the bins that have items.
func (q *squaredSearch) offer(bins *[maxBins + 1]moment, to *contest) {
	unit := q.unit / float64(q.whole.w>>countBits)
	left := moment{}
	for step, b := range q.present[:len(q.present)-1] {
		left.add(bins[b])
		if gain := q.gain(left) * unit; gain > to.limit {
			q.propose(gain, left, int(b), int(q.present[step+1]), to)
		}
	}
}

// searchFew goes over the cuts between items in order of their bins.
func (q *squaredSearch) searchFew(feature int, to *contest) bool {
	features, n := len(q.bins.codes), len(q.items)
	keys := q.sorted[:n] // bin, then number
	for i := range keys {
		key, at := uint16(q.block[i*features+feature])<<8|uint16(i), i
		for ; at > 0 && keys[at-1] > key; at-- {
			keys[at] = keys[at-1]
		}
		keys[at] = key
	}
	if keys[0]>>8 == keys[n-1]>>8 {
		return false
	}
	unit := q.unit / float64(q.whole.w>>countBits)
	left := moment{}
	for step, key := range keys[:n-1] {
		left.add(q.items[uint8(key)])
		next := keys[step+1] >> 8
		if next == key>>8 {
			continue
		}
		if gain := q.gain(left) * unit; gain > to.limit {
			q.propose(gain, left, int(key>>8), int(next), to)
		}
	}
	return true
}

// gain of a cut that has some items on its left, times W; see squaredSearch.
func (q *squaredSearch) gain(left moment) float64 {
	weight, w := float64(q.whole.w>>countBits), left.w>>countBits
	wl, sl := float64(w), float64(left.s-q.mean*w)
	d := sl*weight - float64(q.whole.s)*wl
	return d * d / (wl * (weight - wl))
}

// propose offers a cut that leaves enough examples on both sides.
func (q *squaredSearch) propose(gain float64, left moment, last, next int, to *contest) {
	taken := int(left.w & countMask)
	if taken < q.minimum || len(q.items)-taken < q.minimum {
		return
	}
	below, above := 0.0, 0.0
	if to.bound {
		weight, sum, w := float64(q.whole.w>>countBits), float64(q.whole.s), left.w>>countBits
		wl, sl := float64(w), float64(left.s-q.mean*w)
		mean, perWeight := float64(q.mean), 1/q.pulling/q.weighting.unit
		below, above = (sl/wl+mean)*perWeight, ((sum-sl)/(weight-wl)+mean)*perWeight
	}
	to.offer(gain, last, next, below, above)
}

func (q *squaredSearch) divide(left int, features []int, wanted [2]bool) (sides [2]sums) {
	if q.own == nil {
		return sides
	}
	items := [2][]item{q.plot.items[:left], q.plot.items[left:]}
	small, large := 0, 1
	if len(items[small]) > len(items[large]) {
		small, large = large, small
	}
	if len(items[large]) < q.large || !wanted[large] {
		return sides // enter takes the node's back
	}
	part := q.take()
	for i := range items[small] {
		it := &items[small][i]
		m, codes := q.moment(it), q.bins.row(it.row)
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
	sides[large], q.own = q.own, nil
	if wanted[small] && len(items[small]) >= q.large {
		sides[small] = part
	} else {
		q.release(part)
	}
	return sides
}

// take returns empty sums; release gives some back.
func (q *squaredSearch) take() sums {
	if n := len(q.idle); n > 0 {
		s := q.idle[n-1]
		q.idle = q.idle[:n-1]
		for f, low := range q.bins.low {
			clear(s[f][:len(low)])
		}
		return s
	}
	return make(sums, len(q.bins.low))
}

func (q *squaredSearch) release(s sums) {
	if s != nil {
		q.idle = append(q.idle, s)
	}
}
