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

// search finds the best cut of one feature,
//
//	gain = WL WR / W (GL/WL - GR/WR)² = (GL W - G WL)² / (W WL WR)
//
// with G the sum of pulls and W the weight of a side: how much the squared
// distance between a leaf's pulls and their mean falls (Friedman 2001,
// equation 35). Sign is that of a monotone feature; at least minimum examples
// are left on both sides.
func (t *tally) search(feature, bins, minimum, sign int) (best cut) {
	var whole, left, heavy, heavyLeft int64
	weighted := t.weights != nil
	pulls := &t.pulls[feature]
	for b := range pulls[:bins] {
		whole += pulls[b]
		if weighted {
			heavy += t.weights[feature][b]
		}
	}
	count := int(whole & countMask)
	if !weighted {
		heavy = int64(count) << countBits
	}
	g, w := float64(whole>>countBits), float64(heavy>>countBits)
	limit, last := 0.0, 0
	for b := range pulls[:bins] {
		here := pulls[b]
		if here&countMask == 0 {
			continue
		}
		taken := int(left & countMask)
		if taken >= minimum && count-taken >= minimum {
			gl, wl := float64(left>>countBits), float64(taken)
			if weighted {
				wl = float64(heavyLeft >> countBits)
			}
			d := gl*w - g*wl
			gain := d * d / (wl * (w - wl)) // NaN or infinite if a side weighs nothing
			// d < 0 says that the left side lies below the right one.
			if gain > limit && gain <= math.MaxFloat64 && !(sign > 0 && d > 0) && !(sign < 0 && d < 0) {
				best = cut{gain: gain / w, feature: feature, last: last, next: b, found: true}
				limit = gain * (1 + 1e-12) // a tie but for rounding: the first wins
			}
		}
		left += here
		if weighted {
			heavyLeft += t.weights[feature][b]
		}
		last = b
	}
	return best
}
