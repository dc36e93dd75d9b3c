package regress

import (
	"math"
	"math/bits"
	"slices"
)

// maxBins is the maximum number of bins of a feature: a bin number fits a byte, and a feature of up
// to 255 distinct values is exact.
const maxBins = 255

// sampledValues is the number of values of a longer column that determine its bins.
const sampledValues = 1 << 17

// binned holds the features of a dataset as bin numbers, shared by all trees of a forest.
type binned struct {
	codes [][]uint8   // by feature and example: bin number
	rows  []uint8     // the same by example and feature, for growing trees
	low   [][]float64 // by feature and bin: the smallest value in it
	high  [][]float64 // by feature and bin: the largest
	cuts  [][]float64 // by feature: cut k lies between bins k and k+1
}

func bin(columns [][]float64, threads int) *binned {
	n := len(columns)
	b := &binned{
		codes: make([][]uint8, n),
		low:   make([][]float64, n),
		high:  make([][]float64, n),
		cuts:  make([][]float64, n),
	}
	parallel(threads, n, 1, func(_, from, to int) {
		for f := from; f < to; f++ {
			b.bin(f, columns[f])
		}
	})
	return b
}

// bin assigns the values of a feature to bins: each to the first bin whose cut it does not exceed.
func (b *binned) bin(f int, column []float64) {
	codes := make([]uint8, len(column))
	if len(column) <= sampledValues && distinct(column, maxBins) == nil {
		// One sort gives the bins and their examples.
		places := sortedOrder(column)
		b.low[f], b.high[f] = shares(pick(column, places))
		k := 0
		for _, at := range places {
			if column[at] > b.high[f][k] {
				k++
			}
			codes[at] = uint8(k)
		}
		b.codes[f], b.cuts[f] = codes, cutsBetween(b.low[f], b.high[f])
		return
	}
	low, high := edges(column)
	cuts := cutsBetween(low, high)
	search := newCutSearch(cuts)
	for i, x := range column {
		codes[i] = search.find(x)
	}
	if len(column) > sampledValues { // the sample may have missed the extremes of a bin
		for i, x := range column {
			k := codes[i]
			low[k], high[k] = min(low[k], x), max(high[k], x)
		}
	}
	b.codes[f], b.low[f], b.high[f], b.cuts[f] = codes, low, high, cuts
}

// cutsBetween returns the midpoints between neighbouring bins.
func cutsBetween(low, high []float64) []float64 {
	cuts := make([]float64, len(low)-1)
	for k := range cuts {
		cuts[k] = halfway(high[k], low[k+1])
	}
	return cuts
}

// cutSearch is a branch-free binary search among sorted cuts. It compares integer keys, because Go
// compiles a choice between floats to a branch.
type cutSearch [256]uint64

func newCutSearch(cuts []float64) *cutSearch {
	l := &cutSearch{}
	for i := range l {
		l[i] = math.MaxUint64
	}
	for i, cut := range cuts {
		l[i] = orderedKey(cut)
	}
	return l
}

// find returns the number of cuts below x.
func (l *cutSearch) find(x float64) uint8 {
	key, at := orderedKey(x), uint8(0)
	for step := uint8(128); step > 0; step >>= 1 {
		next := at
		if l[at+step-1] < key {
			next = at + step
		}
		at = next
	}
	return at
}

// edges returns the smallest and the largest value of each bin: one bin per value if there are at
// most maxBins values, otherwise bins with about equal numbers of examples.
func edges(column []float64) (low, high []float64) {
	if values := distinct(column, maxBins); values != nil {
		return values, slices.Clone(values)
	}
	values := sample(column)
	return shares(pick(values, sortedOrder(values)))
}

// shares cuts sorted values into bins of about equal numbers.
func shares(sorted []float64) (low, high []float64) {
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

// distinct returns the sorted distinct values of a column; nil if there are more than most.
func distinct(column []float64, most int) []float64 {
	values := make([]float64, 0, most+1)
	for i, x := range column {
		if i > 0 && x == column[i-1] {
			continue
		}
		if at, known := slices.BinarySearch(values, x); !known {
			if values = slices.Insert(values, at, x); len(values) > most {
				return nil
			}
		}
	}
	return values
}

// sample returns a column, or for a long one a stratified random sample: a sorted column then gives
// its quantiles.
func sample(column []float64) []float64 {
	n := len(column)
	if n <= sampledValues {
		return column
	}
	s := stream(n)
	values := make([]float64, sampledValues)
	for i := range values {
		from, to := part(i, sampledValues, n)
		values[i] = column[from+s.below(to-from)]
	}
	return values
}

// byExample returns the codes by example, then feature: the layout for sums over all features of
// some examples.
func (b *binned) byExample(threads int) []uint8 {
	features := len(b.codes)
	n := len(b.codes[0])
	codes := make([]uint8, n*features)
	parallel(threads, n, 1<<14, func(_, from, to int) {
		const block = 512 // rows that stay in the cache until all their features are copied
		for ; from < to; from += block {
			for f, column := range b.codes {
				for i, code := range column[from:min(from+block, to)] {
					codes[(from+i)*features+f] = code
				}
			}
		}
	})
	return codes
}

// maxBins returns the maximum number of bins of a feature.
func (b *binned) maxBins() int {
	most := 0
	for _, low := range b.low {
		most = max(most, len(low))
	}
	return most
}

// row returns the codes of an example by feature.
func (b *binned) row(example int32) []uint8 {
	features := len(b.codes)
	return b.rows[int(example)*features:][:features]
}

// cut returns the number of the cut that separates bins up to left from bins from right on. If bins
// between them are empty, it is the cut nearest to the midpoint, so that values between measured
// ones follow the closer side.
func (b *binned) cut(feature, left, right int) int {
	if right-left == 1 {
		return left
	}
	cuts := b.cuts[feature][left:right]
	middle := halfway(b.high[feature][left], b.low[feature][right])
	above, _ := slices.BinarySearch(cuts, middle)
	if above == len(cuts) || above > 0 && middle-cuts[above-1] <= cuts[above]-middle {
		above--
	}
	return left + above
}

// halfway returns the midpoint of a < b, or a if no number lies between: with "x <= threshold goes
// left" both separate a from b.
func halfway(a, b float64) float64 {
	if m := a/2 + b/2; m > a && m < b {
		return m
	}
	return a
}

// binSet is the set of bins with items, so that a small node visits few bins.
type binSet [4]uint64

func (s *binSet) add(code uint8) { s[code>>6] |= 1 << (code & 63) }

// drain appends the bins of the set in order and empties it.
func (s *binSet) drain(to []uint8) []uint8 {
	for word, rest := range s {
		for ; rest != 0; rest &= rest - 1 {
			to = append(to, uint8(word<<6|bits.TrailingZeros64(rest)))
		}
		s[word] = 0
	}
	return to
}
