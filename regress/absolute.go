package regress

import "math"

// absoluteSearch finds the cut with the smallest sum of absolute differences
// from the medians of both sides, exactly. Items are in order of their targets,
// y_1 to y_n. With F_i the weight of the members of a side up to item i, and W
// the weight of all of them, the side's loss is
//
//	sum over i of (y_i+1 - y_i) min(F_i, W - F_i)
//
// because a member counts once for each gap between it and the median. That
// needs no median and no branch, in O(n) per cut. Features of many bins are
// searched by walkSearch, in O(n) for all cuts.
type absoluteSearch struct {
	minimum int  // fewest examples on a side
	wanted  bool // medians are wanted, not only losses
	weight  float64
	loss    float64
	weights []uint64  // bits of the items' weights
	gaps    []float64 // from each item's target to the next, 0 after the last
	codes   []uint8   // bins of the items
	present []uint8   // the bins that have items, in order
	bins    [maxBins + 1]absoluteBin
	used    binSet
	walk    walkSearch
}

type absoluteBin struct {
	weight       float64
	count, start int32
}

// Up to so many cuts, or items, one scan per cut is faster than a walk.
const (
	scannedCuts  = 16
	scannedItems = 16
)

func (a *absoluteSearch) enter(items []item, whole pair) float64 {
	n := len(items)
	if cap(a.codes) < n {
		a.weights, a.gaps, a.codes = make([]uint64, n), make([]float64, n), make([]uint8, n)
	}
	a.weights, a.gaps, a.codes = a.weights[:n], a.gaps[:n], a.codes[:n]
	a.weight, a.loss, a.walk.ready = whole.w, 0, false
	half := whole.w / 2
	d := -half
	for i := range items {
		a.weights[i] = math.Float64bits(items[i].w)
		gap := 0.0
		if i+1 < n {
			gap = items[i+1].y - items[i].y
		}
		a.gaps[i] = gap
		d += items[i].w
		a.loss += gap * (half - math.Abs(d))
	}
	return a.loss
}

func (a *absoluteSearch) search(items []item, codes []uint8, bins int, to *contest) bool {
	a.count(items, codes, bins)
	cuts := len(a.present) - 1
	if cuts == 0 {
		return false
	}
	if a.wanted || cuts > scannedCuts && len(items) > scannedItems {
		if !a.walk.ready {
			a.walk.enter(items, a.weight)
		}
		a.walk.search(a, items, to)
		return true
	}
	weight, taken := 0.0, 0
	for step, b := range a.present[:cuts] {
		weight += a.bins[b].weight
		taken += int(a.bins[b].count)
		if taken >= a.minimum && len(items)-taken >= a.minimum {
			to.offer(a.loss-a.scan(b, weight), int(b), int(a.present[step+1]), 0, 0)
		}
	}
	return true
}

// count fills codes, bins and present.
func (a *absoluteSearch) count(items []item, codes []uint8, bins int) {
	for _, b := range a.present { // of the feature before
		a.bins[b] = absoluteBin{}
	}
	a.used.begin(len(items), bins)
	for i := range items {
		c := codes[items[i].row]
		a.codes[i] = c
		a.bins[c].weight += items[i].w
		a.bins[c].count++
		a.used.add(c)
	}
	a.present = a.present[:0]
	for b := a.used.next(-1); b >= 0; b = a.used.next(b) {
		if a.bins[b].count > 0 {
			a.present = append(a.present, uint8(b))
		}
	}
}

// scan returns the loss of both sides where bins up to last, of the given
// weight, go left. As min(F, W-F) = W/2 - |F - W/2|, it keeps F - W/2 of both
// sides. An item's weight is added to the left by a mask, because a branch would
// be guessed wrong half of the time.
func (a *absoluteSearch) scan(last uint8, weight float64) (loss float64) {
	half := a.weight / 2
	below, above := -weight/2, weight/2-half
	gaps, weights := a.gaps, a.weights
	codes := a.codes[:len(gaps)]
	weights = weights[:len(gaps)]
	for i, gap := range gaps {
		mask := uint64((int64(codes[i]) - int64(last) - 1) >> 63)
		below += math.Float64frombits(weights[i] & mask)
		above += math.Float64frombits(weights[i] &^ mask)
		loss += gap * (half - math.Abs(below) - math.Abs(above))
	}
	return loss
}
