package regress

import (
	"math"
	"math/bits"
)

// absoluteSearch finds the cut with the smallest sum of absolute differences from the medians of
// both sides, exactly. Items are ordered by target, y_1 to y_n. Measured from the node's median,
// the losses of both sides add up to the node's loss. The gain of a cut is what each side saves by
// using its own median. On the way from y_i to y_i+1 that is
//
//	(y_i+1 - y_i) |2 F_i - W|
//
// where F_i is the weight of the side's items up to item i and W the weight of all its items. The
// gain of the cut is the sum of both sides. A cut costs at most the distance between the medians.
// Features of many bins are searched by walkSearch, in O(n) for all cuts.
type absoluteSearch struct {
	minimum   int  // minimum number of examples on a side
	large     int  // number of items from which every bin is visited
	wanted    bool // medians are needed as well as losses
	table     *binned
	weighting packing
	plot      *nodeItems
	balances  []int64              // of the items: weight, negative after the median
	weights   []uint64             // bits of twice the items' weights
	gaps      []float64            // from each item's target to the next; 0 after the last
	columns   [][]uint8            // by feature: bins of the items
	bins      [][maxBins + 1]int64 // by feature: sums of balances; empty between nodes
	filled    []bool               // by feature: filled but not searched
	present   []uint8              // bins of a feature with items, in order
	used      binSet
	walk      walkSearch
}

// Up to this number of cuts, or items, moving from median to median is faster than a walk over all.
const (
	fewCuts  = 16
	fewItems = 16
)

func newAbsoluteSearch(g *growth) *absoluteSearch {
	features := len(g.bins.codes)
	return &absoluteSearch{
		minimum:   g.options.MinLeaf,
		large:     largeNode(g.bins.maxBins()),
		wanted:    g.hasSigns,
		table:     g.bins,
		weighting: newPacking(len(g.target), g.heaviest()),
		columns:   make([][]uint8, features),
		bins:      make([][maxBins + 1]int64, features),
		filled:    make([]bool, features),
	}
}

func (a *absoluteSearch) beginTree([]drawnItem, []int32) {}

func (a *absoluteSearch) beginNode(p *nodeItems, _ *keptSums) (loss, noise float64) {
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
	median := p.item(p.medianAt).y
	for i := range p.items {
		it := p.item(i)
		w, next := it.w, it.y
		if i > p.medianAt {
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

func (a *absoluteSearch) search(feature int, to *splitSelection) bool {
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

// list sets present.
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

// offer offers the cuts between the bins with items.
func (a *absoluteSearch) offer(bins *[maxBins + 1]int64, codes []uint8, to *splitSelection) {
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

// win returns the gain of a side: what it saves on the way from the node's median to its own
// median. The left side has the bins up to last; the right side, with flip -1, has the others. The
// weight of an item is masked, because a branch would be mispredicted half of the time.
func (a *absoluteSearch) win(codes []uint8, last, flip int64, balance float64) (gain float64) {
	gaps, weights := a.gaps[:len(codes)], a.weights[:len(codes)]
	at := a.plot.medianAt
	if balance < 0 { // upwards
		for ; balance < 0 && at+1 < len(codes); at++ {
			gain -= gaps[at] * balance
			balance += math.Float64frombits(
				weights[at+1] & uint64((int64(codes[at+1])-last-1)>>63^flip),
			)
		}
		return gain
	}
	for ; at > 0; at-- { // downwards, while the balance without this item is positive
		balance -= math.Float64frombits(weights[at] & uint64((int64(codes[at])-last-1)>>63^flip))
		if balance <= 0 {
			break
		}
		gain += gaps[at-1] * balance
	}
	return gain
}

// splitNode keeps nothing, because the codes of a side are in another order.
func (a *absoluteSearch) splitNode(int, int, []int, [2]bool, *[2]keptSums) {}

func (a *absoluteSearch) sideSums(*[2]keptSums) {}

// walkSearch walks over the cuts of one feature and keeps the medians of both sides. As the cut
// passes a bin, its examples move from the right side to the left. Each side is a bit set of
// positions; its median moves to the next or previous member until it is correct again. It moves
// about as often as members come and go, so that all cuts of a feature cost O(n), for any number of
// bins. With m the weighted median of a side,
//
//	loss = S - 2 S_below + m (2 W_below - W)
//
// where W and S are the weight and the weighted sum of targets of the side, and W_below and S_below
// those of its members before the median.
type walkSearch struct {
	ready       bool // for the current node
	items       []centredItem
	node        cutSide // the whole node, at its median
	left, right cutSide
	sorted      []int32 // positions ordered by bin
	starts      [256]int
}

// centredItem is an item whose target is relative to the middle of the node, to keep the precision
// of sums.
type centredItem struct {
	pair
	y float64
}

// cutSide is one side of a cut.
type cutSide struct {
	members []uint64 // a bit for each position in the node
	whole   pair     // of all members
	before  pair     // of the members before the median
	at      int      // the median: first member at which the weight exceeds half
}

// enter prepares a node.
func (k *walkSearch) enter(p *nodeItems, weight float64) {
	n := len(p.items)
	if cap(k.items) < n {
		k.items, k.sorted = make([]centredItem, n), make([]int32, n)
		for _, h := range []*cutSide{&k.node, &k.left, &k.right} {
			h.members = make([]uint64, (n+63)/64)
		}
	}
	k.items = k.items[:n]
	center := p.item(n / 2).y
	k.node = cutSide{members: k.node.members[:(n+63)/64], whole: pair{w: weight}}
	for i := range p.items {
		it := p.item(i)
		y := it.y - center
		s := it.w * y
		k.items[i] = centredItem{pair{it.w, s}, y}
		k.node.whole.s += s
	}
	for w := range k.node.members {
		k.node.members[w] = ^uint64(0)
	}
	if n%64 != 0 {
		k.node.members[n/64] = 1<<(n%64) - 1
	}
	k.node.settle(k.items)
	k.ready = true
}

// search offers all cuts of a feature whose bins were counted.
func (k *walkSearch) search(
	a *absoluteSearch, bins *[maxBins + 1]int64, codes []uint8, to *splitSelection,
) {
	p := a.plot
	if !k.ready {
		k.enter(p, p.whole.w)
	}
	n, words := len(p.items), len(k.node.members)
	k.left = cutSide{members: k.left.members[:words], at: n}
	clear(k.left.members)
	members := k.right.members[:words]
	copy(members, k.node.members)
	k.right = k.node
	k.right.members = members
	k.sort(a.present, bins, codes)

	loss := k.node.loss(k.items)
	for step, taken := 0, 0; ; step++ {
		b := a.present[step]
		if taken >= a.minimum && n-taken >= a.minimum {
			k.right.whole = k.node.whole
			k.right.whole.sub(k.left.whole)
			k.left.settle(k.items)
			k.right.settle(k.items)
			gain := loss - k.left.loss(k.items) - k.right.loss(k.items)
			var below, above float64
			if a.wanted {
				below, above = k.left.median(p), k.right.median(p)
			}
			if gain > to.limit {
				to.offer(gain, int(a.present[step-1]), int(b), below, above)
			}
		}
		if step == len(a.present)-1 {
			return
		}
		k.pass(k.sorted[taken : taken+int(bins[b]&countMask)])
		taken += int(bins[b] & countMask)
	}
}

// sort sets sorted: positions by bin, within a bin by target.
func (k *walkSearch) sort(present []uint8, bins *[maxBins + 1]int64, codes []uint8) {
	k.sorted = k.sorted[:len(codes)]
	start := 0
	for _, b := range present {
		k.starts[b] = start
		start += int(bins[b] & countMask)
	}
	for i, c := range codes {
		k.sorted[k.starts[c]] = int32(i)
		k.starts[c]++
	}
}

// pass moves items from the right side to the left. The sum of the right side is not updated: it
// follows from the sums of the node and the left side.
func (k *walkSearch) pass(positions []int32) {
	whole, below, above := k.left.whole, k.left.before, k.right.before
	from, to := k.right.members, k.left.members
	for _, position := range positions {
		i := int(position)
		p := k.items[i].pair
		bit := uint64(1) << (i & 63)
		from[i>>6] &^= bit
		to[i>>6] |= bit
		whole.add(p)
		below.add(p.masked(i, k.left.at))
		above.sub(p.masked(i, k.right.at))
	}
	k.left.whole, k.left.before, k.right.before = whole, below, above
}

// settle moves the median after members have been added or removed. There is at least one member.
func (h *cutSide) settle(items []centredItem) {
	if h.at == len(items) || h.members[h.at>>6]>>(h.at&63)&1 == 0 {
		at := h.next(h.at, len(items))
		if at == len(items) {
			at = h.previous(h.at)
			h.before.sub(items[at].pair)
		}
		h.at = at
	}
	middle := h.whole.w / 2
	for h.before.w > middle {
		at := h.previous(h.at)
		if at < 0 { // only by rounding
			break
		}
		h.at = at
		h.before.sub(items[at].pair)
	}
	for h.before.w+items[h.at].w <= middle {
		at := h.next(h.at, len(items))
		if at == len(items) { // only by rounding
			break
		}
		h.before.add(items[h.at].pair)
		h.at = at
	}
}

// next returns the first member after i, or n.
func (h *cutSide) next(i, n int) int {
	i++
	for k := i >> 6; k < len(h.members); k++ {
		if word := h.members[k] >> (i & 63); word != 0 {
			return i + bits.TrailingZeros64(word)
		}
		i = (k + 1) << 6
	}
	return n
}

// previous returns the last member before i, or -1.
func (h *cutSide) previous(i int) int {
	i--
	for k := i >> 6; k >= 0; k-- {
		if word := h.members[k] << (63 - i&63); word != 0 {
			return i - bits.LeadingZeros64(word)
		}
		i = k<<6 - 1
	}
	return -1
}

func (h *cutSide) loss(items []centredItem) float64 {
	return h.whole.s - 2*h.before.s + items[h.at].y*(2*h.before.w-h.whole.w)
}

// median returns the target at which the cumulative weight exceeds half, or the midpoint of two
// where it equals half.
func (h *cutSide) median(p *nodeItems) float64 {
	if y := p.item(h.at).y; h.before.w == h.whole.w/2 {
		if i := h.previous(h.at); i >= 0 {
			return p.item(i).y/2 + y/2
		}
	}
	return p.item(h.at).y
}
