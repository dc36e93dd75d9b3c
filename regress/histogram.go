package regress

import (
	"math"
	"math/bits"
)

// histogram holds a sum of whole numbers for each feature and bin. The upper
// bits of an entry are the sum of what examples pull (see loss.pull), counted in
// a small unit, the lower countBits how many examples they are: one addition
// does both (Shi et al. 2022 pack gradients likewise). Sums of whole numbers are
// exact in any order, so that any number of threads gives the same tree, and the
// difference of two histograms has no error.
type histogram [][maxBins + 1]int64

const (
	countBits = 24
	countMask = 1<<countBits - 1
)

// add puts examples into their bins. Codes are by example, then feature.
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

// sub and plus go over the bins that features have.
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

// packing turns numbers into the entries of histograms. Of n numbers none may be
// above most; their unit is so small that n of them just fit 39 bits and a sign.
// It is a power of two: ones, halves and the like are not rounded.
type packing struct{ unit, perUnit float64 }

func newPacking(n int, most float64) packing {
	if most < 1e-250 { // nothing is left to learn
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

// tally is what is summed up over the examples of a leaf. Where all weights are
// 1 the number of examples is their weight, and weights is nil.
type tally struct{ pulls, weights histogram }

func newTally(features int, weighted bool) *tally {
	t := &tally{pulls: make(histogram, features)}
	if weighted {
		t.weights = make(histogram, features)
	}
	return t
}

func (t *tally) sub(o *tally, bins [][]float64) {
	t.pulls.sub(o.pulls, bins)
	if t.weights != nil {
		t.weights.sub(o.weights, bins)
	}
}

func (t *tally) plus(o *tally, bins [][]float64) {
	t.pulls.plus(o.pulls, bins)
	if t.weights != nil {
		t.weights.plus(o.weights, bins)
	}
}

func (t *tally) clear(bins [][]float64) {
	t.pulls.clear(bins)
	if t.weights != nil {
		t.weights.clear(bins)
	}
}

// cut is where a leaf may be split.
type cut struct {
	gain          float64 // in squared units of pulls per unit of weight
	feature, last int     // bins up to last go left
	next          int     // the first bin with examples on the right
	found         bool
}

// whole is what all bins of a feature hold. Each example lies in one of them, so
// that every feature has the same.
func (t *tally) whole(bins int) (whole total) {
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

// total is a sum over some bins of a tally.
type total struct{ pulls, weights int64 }

// search finds the best cut of one feature,
//
//	gain = WL WR / W (GL/WL - GR/WR)² = (GL W - G WL)² / (W WL WR)
//
// with G the sum of pulls and W the weight of a side: how much the squared
// distance between a leaf's pulls and their mean falls (Friedman 2001,
// equation 35). Sign is that of a monotone feature; at least minimum examples, 1
// or more, are left on both sides. Behind an empty bin the cut is the one before
// it, and gains no more: no branch asks for it. Nor is there a division before a
// cut is better but for rounding.
func (t *tally) search(feature, bins, minimum, sign int, whole total) (best cut) {
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
		// d < 0 says that the left side lies below the right one.
		if gain > limit && gain <= math.MaxFloat64 && !(sign > 0 && d > 0) && !(sign < 0 && d < 0) {
			best = cut{gain: gain / w, feature: feature, last: b, found: true}
			limit = gain * (1 + 1e-12) // a tie but for rounding: the first wins
			nearly = gain
		}
	}
	if best.found {
		for best.next = best.last + 1; pulls[best.next]&countMask == 0; best.next++ {
		}
	}
	return best
}
