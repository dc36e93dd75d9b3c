package regress

import "math/bits"

// searcher finds cuts of one feature in a node; there is one for each criterion.
type searcher interface {
	// enter prepares a node and returns its loss.
	enter(items []item) (loss float64)
	// search appends the boundaries that leave enough examples on both sides.
	// Codes are the bins of the items.
	search(items []item, codes []uint8, found []boundary) []boundary
}

// boundary is a place at which a node can be cut.
type boundary struct {
	gain         float64
	left, right  int     // last bin on the left, first one with examples on the right
	below, above float64 // predictions of both sides, where bounds ask for them
}

// sides holds what both criteria need to know about the two sides of a cut.
type sides struct {
	minimum int  // fewest examples on a side
	wanted  bool // predictions of the sides are needed, for monotone features
	counts  [maxBins + 1]int32
}

// count fills counts and returns the first and the last bin with examples.
func (s *sides) count(codes []uint8) (first, last int) {
	low, high := codes[0], codes[0]
	for _, c := range codes {
		low, high = min(low, c), max(high, c)
	}
	clear(s.counts[low : int(high)+1])
	for _, c := range codes {
		s.counts[c]++
	}
	return int(low), int(high)
}

// following returns the next bin after b that has examples; there is one.
func (s *sides) following(b int) int {
	for b++; s.counts[b] == 0; b++ {
	}
	return b
}

// pair is a weight and a weighted sum of targets.
type pair struct{ w, s float64 }

// squaredSearch finds the cut with the smallest sum of squared differences from
// the means of both sides:
//
//	gain = WL WR / W (SL/WL - SR/WR)²
//
// with W the weight and S the weighted sum of targets of a side. Targets are
// taken from the node's mean, so that no digits are lost in differences.
type squaredSearch struct {
	sides
	mean  float64
	whole pair
	bins  [maxBins + 1]pair
}

func (q *squaredSearch) enter(items []item) (loss float64) {
	sum, weight := 0.0, 0.0
	for i := range items {
		sum += items[i].w * items[i].y
		weight += items[i].w
	}
	q.mean, q.whole = sum/weight, pair{w: weight}
	for i := range items {
		y := items[i].y - q.mean
		q.whole.s += items[i].w * y
		loss += items[i].w * y * y
	}
	return loss
}

func (q *squaredSearch) search(items []item, codes []uint8, found []boundary) []boundary {
	first, last := q.count(codes)
	clear(q.bins[first : last+1])
	for i, c := range codes {
		q.bins[c].w += items[i].w
		q.bins[c].s += items[i].w * (items[i].y - q.mean)
	}
	left, taken := pair{}, 0
	for b := first; b < last; b++ {
		if q.counts[b] == 0 {
			continue
		}
		left.w += q.bins[b].w
		left.s += q.bins[b].s
		taken += int(q.counts[b])
		if taken < q.minimum || len(items)-taken < q.minimum {
			continue
		}
		right := pair{q.whole.w - left.w, q.whole.s - left.s}
		if right.w <= 0 { // weights so unequal that the difference is lost
			continue
		}
		below, above := left.s/left.w, right.s/right.w
		found = append(found, boundary{gain: left.w * right.w / q.whole.w * (above - below) * (above - below),
			left: b, right: q.following(b), below: below + q.mean, above: above + q.mean})
	}
	return found
}

// absoluteSearch finds the cut with the smallest sum of absolute differences
// from the medians of both sides, exactly. With m the weighted median of a side,
//
//	loss = S - 2 S_below + m (2 W_below - W)
//
// where S_below and W_below are the sums over the examples before the median.
// Items are in order of their targets and stand in blocks of about sqrt(n); one
// pass fills weight and sum per bin and block, so that a boundary costs a scan
// of the blocks and of one block's items: O(n + bins sqrt n) per feature.
type absoluteSearch struct {
	sides
	shift  uint // an item's block is its position >> shift
	whole  pair
	loss   float64
	cells  []pair // by bin and block
	blocks []pair // by block: the whole node
	left   []pair // by block: bins up to the boundary
	right  []pair // by block: bins beyond it
}

func (a *absoluteSearch) enter(items []item) float64 {
	a.shift = uint(bits.Len(uint(len(items)))) / 2
	count := (len(items)-1)>>a.shift + 1
	a.blocks, a.left, a.right = resize(a.blocks, count), resize(a.left, count), resize(a.right, count)
	clear(a.blocks)
	a.whole = pair{}
	for i := range items {
		w, s := items[i].w, items[i].w*items[i].y
		b := &a.blocks[i>>a.shift]
		b.w += w
		b.s += s
		a.whole.w += w
		a.whole.s += s
	}
	half, before := a.whole.w/2, pair{}
	for i := range items {
		if before.w+items[i].w > half {
			a.loss = a.whole.s - 2*before.s + items[i].y*(2*before.w-a.whole.w)
			break
		}
		before.w += items[i].w
		before.s += items[i].w * items[i].y
	}
	return a.loss
}

func (a *absoluteSearch) search(items []item, codes []uint8, found []boundary) []boundary {
	first, last := a.count(codes)
	blocks := len(a.blocks)
	a.cells = resize(a.cells, (last-first+1)*blocks)
	clear(a.cells)
	for i, c := range codes {
		cell := &a.cells[(int(c)-first)*blocks+i>>a.shift]
		cell.w += items[i].w
		cell.s += items[i].w * items[i].y
	}
	clear(a.left)
	left, taken := pair{}, 0
	for b := first; b < last; b++ {
		if a.counts[b] == 0 {
			continue
		}
		for k, cell := range a.cells[(b-first)*blocks : (b-first+1)*blocks] {
			a.left[k].w += cell.w
			a.left[k].s += cell.s
			left.w += cell.w
			left.s += cell.s
		}
		taken += int(a.counts[b])
		if taken < a.minimum || len(items)-taken < a.minimum {
			continue
		}
		for k, whole := range a.blocks {
			a.right[k] = pair{whole.w - a.left[k].w, whole.s - a.left[k].s}
		}
		right := pair{a.whole.w - left.w, a.whole.s - left.s}
		lossLeft, below := a.side(items, codes, a.left, left, 0, uint8(b))
		lossRight, above := a.side(items, codes, a.right, right, uint8(b)+1, 255-uint8(b)-1)
		found = append(found, boundary{gain: a.loss - lossLeft - lossRight,
			left: b, right: a.following(b), below: below, above: above})
	}
	return found
}

// side returns the loss of the items whose bins are in [low, low+span] and,
// where it is wanted, their median. Total is the sum over blocks.
func (a *absoluteSearch) side(items []item, codes []uint8, blocks []pair, total pair, low, span uint8) (loss, median float64) {
	half, before, block := total.w/2, pair{}, 0
	for ; block < len(blocks)-1 && before.w+blocks[block].w <= half; block++ {
		before.w += blocks[block].w
		before.s += blocks[block].s
	}
	middle := -1
	for i := block << a.shift; i < len(items); i++ {
		if codes[i]-low > span {
			continue
		}
		middle = i
		if before.w+items[i].w > half {
			break
		}
		before.w += items[i].w
		before.s += items[i].w * items[i].y
	}
	if middle < 0 { // only if block sums and item sums round differently
		middle = lastWithin(codes, len(codes), low, span)
	}
	median = items[middle].y
	loss = total.s - 2*before.s + median*(2*before.w-total.w)
	if a.wanted && before.w == half {
		if i := lastWithin(codes, middle, low, span); i >= 0 {
			median = items[i].y/2 + median/2
		}
	}
	return loss, median
}

// lastWithin returns the last position before end whose code is in
// [low, low+span], or -1.
func lastWithin(codes []uint8, end int, low, span uint8) int {
	for end--; end >= 0 && codes[end]-low > span; end-- {
	}
	return end
}

func resize(pairs []pair, n int) []pair {
	if cap(pairs) < n {
		return make([]pair, n)
	}
	return pairs[:n]
}
