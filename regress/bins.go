package regress

import (
	"math"
	"slices"
)

// maxBins is the most bins that a feature gets: a bin's number fits a byte, and
// a feature of up to 255 different values is treated exactly.
const maxBins = 255

// binned holds the features of a dataset as small numbers. All trees of a
// forest share it.
type binned struct {
	codes [][]uint8   // by feature and example: the number of the value's bin
	low   [][]float64 // by feature and bin: the smallest value in it
	high  [][]float64 // by feature and bin: the largest
	cuts  [][]float64 // by feature: cut k lies between bins k and k+1
}

func bin(columns [][]float64) *binned {
	b := &binned{}
	for _, column := range columns {
		low, high := edges(column)
		cuts := make([]float64, len(low)-1)
		for k := range cuts {
			cuts[k] = halfway(high[k], low[k+1])
		}
		codes := make([]uint8, len(column))
		for i, x := range column {
			k, _ := slices.BinarySearch(high, x)
			codes[i] = uint8(k)
		}
		b.codes = append(b.codes, codes)
		b.low, b.high, b.cuts = append(b.low, low), append(b.high, high), append(b.cuts, cuts)
	}
	return b
}

// edges returns the smallest and the largest value of each bin: a bin per value
// where there are at most maxBins, else bins of about equal numbers of examples.
func edges(column []float64) (low, high []float64) {
	sorted := slices.Clone(column)
	slices.Sort(sorted)
	if distinct := slices.Compact(slices.Clone(sorted)); len(distinct) <= maxBins {
		return distinct, distinct
	}
	for start := 0; start < len(sorted); {
		share := (len(sorted) - start) / (maxBins - len(low))
		end := min(start+max(share, 1), len(sorted)) - 1
		for end+1 < len(sorted) && sorted[end+1] == sorted[end] {
			end++
		}
		low, high = append(low, sorted[start]), append(high, sorted[end])
		start = end + 1
	}
	return low, high
}

// cut returns the number of the cut that separates bins up to left from bins
// from right on. Where bins between them are empty, the cut nearest to the middle is taken:
// values between those seen then follow the closer side.
func (b *binned) cut(feature, left, right int) int {
	cuts := b.cuts[feature]
	last := left
	middle := halfway(b.high[feature][left], b.low[feature][right])
	for k := left + 1; k < right; k++ {
		if math.Abs(cuts[k]-middle) < math.Abs(cuts[last]-middle) {
			last = k
		}
	}
	return last
}

// halfway returns the middle of a < b, or a where no number lies between: as
// "x <= threshold goes left", both separate a from b.
func halfway(a, b float64) float64 {
	if m := a/2 + b/2; m > a && m < b {
		return m
	}
	return a
}
