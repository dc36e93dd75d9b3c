package regress

import (
	"cmp"
	"math"
	"slices"
)

// fewOrdered is how many numbers are ordered faster by comparing them.
const fewOrdered = 2000

// order returns the places of numbers from small to large, those of equal ones in
// order. Many are sorted by the digits of their keys, from the last to the first.
func order(numbers []float64) []int32 {
	places := make([]int32, len(numbers))
	for i := range places {
		places[i] = int32(i)
	}
	if len(numbers) < fewOrdered {
		slices.SortFunc(places, func(a, b int32) int {
			return cmp.Or(cmp.Compare(numbers[a], numbers[b]), cmp.Compare(a, b))
		})
		return places
	}
	keys := make([]placed, len(numbers))
	for i, x := range numbers {
		keys[i] = placed{orderedKey(x), int32(i)}
	}
	for i, k := range byDigits(keys) {
		places[i] = k.place
	}
	return places
}

// placed is a key and where it was found.
type placed struct {
	key   uint64
	place int32
}

// orderedKey is in the order of numbers as an unsigned integer; -0 is 0.
func orderedKey(x float64) uint64 {
	b := math.Float64bits(x + 0)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

const (
	digitBits = 11
	digits    = 6 // of a key
)

// byDigits sorts keys, keeping equal ones in order. A digit that all share costs
// nothing but its count.
func byDigits(keys []placed) []placed {
	var place [digits][1 << digitBits]int32
	for _, k := range keys {
		for d := range place {
			place[d][k.key>>(d*digitBits)%(1<<digitBits)]++
		}
	}
	spare := make([]placed, len(keys))
	for d := range place {
		place, shift := &place[d], d*digitBits
		if int(place[keys[0].key>>shift%(1<<digitBits)]) == len(keys) {
			continue
		}
		next := int32(0)
		for digit, count := range place {
			place[digit] = next
			next += count
		}
		for _, k := range keys {
			at := &place[k.key>>shift%(1<<digitBits)]
			spare[*at] = k
			*at++
		}
		keys, spare = spare, keys
	}
	return keys
}
