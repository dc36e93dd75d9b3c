package regress

import "math"

// absoluteSearch finds the cut with the smallest sum of absolute differences
// from the medians of both sides, exactly. Items are in order of their targets,
// y_1 to y_n. About the median y_m of the node, both sides together lose what
// the node does. Then each side goes to its own median, and wins on the way from
// y_i to y_i+1
//
//	(y_i+1 - y_i) |2 F_i - W|
//
// where F_i is the weight of the side's members up to item i, and W that of all
// of them: half of it lies on the one hand, as many examples as F_i says on the
// other. The gain is what both sides win. A cut costs no more than the way
// between the medians. Features of many bins are searched by walkSearch, in O(n)
// for all cuts.
type absoluteSearch struct {
	minimum   int  // fewest examples on a side
	large     int  // items of a node that looks at every bin
	wanted    bool // medians are wanted, not only losses
	table     *binned
	weighting packing
	plot      *plot
	balances  []int64              // of the items, packed: their weight up to the node's median, less it after it
	weights   []uint64             // bits of twice the items' weights
	gaps      []float64            // from each item's target to the next, 0 after the last
	columns   [][]uint8            // by feature: bins of the items
	bins      [][maxBins + 1]int64 // by feature, empty between nodes: sums of balances
	filled    []bool               // by feature: its bins were filled and not searched, because the node was won before
	present   []uint8              // the bins of a feature that have items, in order
	used      binSet
	walk      walkSearch
}

// Up to so many cuts, or items, going from median to median is faster than a
// walk over all.
const (
	fewCuts  = 16
	fewItems = 16
)

func newAbsoluteSearch(g *growth) *absoluteSearch {
	features := len(g.bins.codes)
	return &absoluteSearch{
		minimum:   g.options.MinLeaf,
		large:     largeNode(g.bins.most()),
		wanted:    g.bound,
		table:     g.bins,
		weighting: newPacking(len(g.target), g.heaviest()),
		columns:   make([][]uint8, features),
		bins:      make([][maxBins + 1]int64, features),
		filled: make(
			[]bool, features,
		),
	}
}

func (a *absoluteSearch) begin([]item, []int32) {}

func (a *absoluteSearch) enter(p *plot, _ *kept) (loss, noise float64) {
	for f, left := range a.filled {
		if left {
			clear(a.bins[f][:])
			a.filled[f] = false
		}
	}
	n := len(p.items)
	if cap(a.weights) < n {
		a.balances, a.weights, a.gaps = make([]int64, n), make([]uint64, n), make([]float64, n)
		for f := range a.columns {
			a.columns[f] = make([]uint8, n)
		}
	}
	a.balances, a.weights, a.gaps = a.balances[:n], a.weights[:n], a.gaps[:n]
	a.plot, a.walk.ready = p, false
	median := p.item(p.middle).y
	for i := range p.items {
		it := p.item(i)
		w, next := it.w, it.y
		if i > p.middle {
			w = -w
		}
		if i+1 < n {
			next = p.item(i + 1).y
		}
		a.gaps[i] = next - it.y
		a.weights[i] = math.Float64bits(2 * it.w)
		a.balances[i] = a.weighting.pack(w)
		loss += w * (median - it.y)
	}
	return loss, rounding * loss
}

func (a *absoluteSearch) fill(features []int) {
	for _, f := range features {
		a.filled[f] = true
	}
	if len(features) == 1 {
		f := features[0]
		bins, codes, column := &a.bins[f], a.table.codes[f], a.columns[f][:len(a.balances)]
		for i, balance := range a.balances {
			c := codes[a.plot.items[i]]
			column[i] = c
			bins[c] += balance
		}
		return
	}
	for i, balance := range a.balances {
		codes := a.table.row(a.plot.items[i])
		for _, f := range features {
			c := codes[f]
			a.columns[f][i] = c
			a.bins[f][c] += balance
		}
	}
}

func (a *absoluteSearch) search(feature int, to *contest) bool {
	n := len(a.balances)
	bins, codes := &a.bins[feature], a.columns[feature][:n]
	a.list(feature)
	if cuts := len(a.present) - 1; a.wanted && cuts > 0 || cuts > fewCuts && n > fewItems {
		a.walk.search(a, bins, codes, to)
	} else if cuts > 0 {
		a.offer(bins, codes, to)
	}
	for _, b := range a.present {
		bins[b] = 0
	}
	a.filled[feature] = false
	return len(a.present) > 1
}

// list fills present.
func (a *absoluteSearch) list(feature int) {
	a.present = a.present[:0]
	if n := len(a.balances); n < a.large {
		for _, c := range a.columns[feature][:n] {
			a.used.add(c)
		}
		a.present = a.used.drain(a.present)
		return
	}
	bins := &a.bins[feature]
	for b := range a.table.low[feature] {
		if bins[b] != 0 {
			a.present = append(a.present, uint8(b))
		}
	}
}

// offer goes over the cuts between the bins that have items.
func (a *absoluteSearch) offer(bins *[maxBins + 1]int64, codes []uint8, to *contest) {
	whole, left := int64(0), int64(0)
	for _, b := range a.present {
		whole += bins[b]
	}
	for step, b := range a.present[:len(a.present)-1] {
		left += bins[b]
		if taken := int(left & countMask); taken < a.minimum || len(codes)-taken < a.minimum {
			continue
		}
		below, above := float64(left>>countBits), float64((whole-left)>>countBits)
		gain := a.win(codes, int64(b), 0, below*a.weighting.unit) + a.win(codes, int64(b), -1,
			above*a.weighting.unit)
		if gain > to.limit {
			to.offer(gain, int(b), int(a.present[step+1]), 0, 0)
		}
	}
}

// win returns what a side wins on its way from the node's median to its own, if
// its balance is that. The left side has the bins up to last, the right one, for
// which flip is -1, the others. An item's weight is taken by a mask, because a
// branch would be guessed wrong half of the time.
func (a *absoluteSearch) win(codes []uint8, last, flip int64, balance float64) (gain float64) {
	gaps, weights := a.gaps[:len(codes)], a.weights[:len(codes)]
	at := a.plot.middle
	if balance < 0 { // up
		for ; balance < 0 && at+1 < len(codes); at++ {
			gain -= gaps[at] * balance
			balance += math.Float64frombits(
				weights[at+1] & uint64((int64(codes[at+1])-last-1)>>63^flip),
			)
		}
		return gain
	}
	for ; at > 0; at-- { // down, as long as it is too much without this item
		balance -= math.Float64frombits(weights[at] & uint64((int64(codes[at])-last-1)>>63^flip))
		if balance <= 0 {
			break
		}
		gain += gaps[at-1] * balance
	}
	return gain
}

// divide keeps nothing: codes of a side are not in its order.
func (a *absoluteSearch) divide(int, int, []int, [2]bool, *[2]kept) {}

func (a *absoluteSearch) halve(*[2]kept) {}
