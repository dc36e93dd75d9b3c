package regress

import (
	"math"
	"math/rand/v2"
	"testing"
)

// plainSearch evaluates the formula of pullHistogram.search for each cut between bins that
// have examples.
func plainSearch(t *pullHistogram, feature, bins, minimum, sign int) (best histogramCut) {
	var present []int
	var g, w float64
	count := 0
	weight := func(b int) float64 {
		if t.weights != nil {
			return float64(t.weights[feature][b] >> countBits)
		}
		return float64(t.pulls[feature][b] & countMask)
	}
	for b, here := range t.pulls[feature][:bins] {
		if here&countMask > 0 {
			present = append(present, b)
			g, w, count = g+float64(here>>countBits), w+weight(b), count+int(here&countMask)
		}
	}
	limit, gl, wl, taken := 0.0, 0.0, 0.0, 0
	for k := range len(present) - 1 {
		b := present[k]
		here := t.pulls[feature][b]
		gl, wl, taken = gl+float64(here>>countBits), wl+weight(b), taken+int(here&countMask)
		d := gl*w - g*wl
		gain := d * d / (wl * (w - wl))
		if taken < minimum || count-taken < minimum || float64(sign)*d > 0 {
			continue
		}
		if gain > limit && gain <= math.MaxFloat64 {
			best = histogramCut{gain: gain / w, feature: feature, last: b, next: present[k+1], found: true}
			limit = gain * (1 + 1e-12)
		}
	}
	return best
}

func TestPullHistogram_SearchEqualsTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	found := 0
	for trial := range 4000 {
		bins, weighted := 1+random.IntN(maxBins), trial%3 == 0
		sums := newPullHistogram(2, weighted)
		for range random.IntN(200) + 1 {
			pull, weight := int64(random.IntN(9)-4), int64(random.IntN(3))
			if trial%2 == 0 {
				pull = int64(random.NormFloat64() * 1e9)
			}
			for f := range 2 {
				b := random.IntN(bins)
				sums.pulls[f][b] += pull<<countBits + 1
				if weighted { // a weight of 0 has no effect and makes no gain infinite
					sums.weights[f][b] += weight<<countBits + 1
				}
			}
		}
		for minimum := 1; minimum < 40; minimum += 6 {
			for sign := -1; sign <= 1; sign++ {
				got := sums.search(1, bins, minimum, sign, sums.whole(bins))
				want := plainSearch(sums, 1, bins, minimum, sign)
				if got != want {
					t.Fatalf("trial %d: search(minimum %d, sign %d) = %+v, want %+v", trial,
						minimum, sign, got, want)
				}
				if got.found {
					found++
				}
			}
		}
	}
	if found < 10000 {
		t.Errorf("found %d cuts, want at least 10000", found)
	}
}
