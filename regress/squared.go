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
	items     []moment // of the node
	whole     moment   // of the node, S from its mean
	mean      int64    // of the node, in units of S per unit of W
	own       sums     // of a large node, else nil
	near      sums     // of a small node, empty between searches
	present   []uint8
	used      binSet
	idle      []sums
}

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
	q.near = make(sums, len(g.bins.codes))
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
	q.mean = q.whole.s / (q.whole.w >> countBits)
	q.whole.s -= q.mean * (q.whole.w >> countBits)
	return loss
}

func (q *squaredSearch) fill(features []int) {
	to := q.own
	if to == nil {
		to = q.near
	}
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
	if q.own != nil {
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
	codes := q.bins.codes[feature]
	for i := range q.plot.items {
		q.used.add(codes[q.plot.items[i].row])
	}
	q.present = q.used.drain(q.present[:0])
	bins := &q.near[feature]
	q.offer(bins, to)
	for _, b := range q.present {
		bins[b] = moment{}
	}
	return len(q.present) > 1
}

// offer goes over the cuts between the bins that have items.
func (q *squaredSearch) offer(bins *[maxBins + 1]moment, to *contest) {
	count := len(q.items)
	weight, sum := float64(q.whole.w>>countBits), float64(q.whole.s)
	unit := q.unit / weight
	left := moment{}
	for step, b := range q.present[:len(q.present)-1] {
		left.add(bins[b])
		taken := int(left.w & countMask)
		if taken < q.minimum || count-taken < q.minimum {
			continue
		}
		w := left.w >> countBits
		wl, sl := float64(w), float64(left.s-q.mean*w)
		d, wr := sl*weight-sum*wl, weight-wl
		if gain := d * d / (wl * wr) * unit; gain > to.limit {
			below, above := 0.0, 0.0
			if to.bound {
				mean, perWeight := float64(q.mean), 1/q.pulling/q.weighting.unit
				below, above = (sl/wl+mean)*perWeight, ((sum-sl)/wr+mean)*perWeight
			}
			to.offer(gain, int(b), int(q.present[step+1]), below, above)
		}
	}
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
