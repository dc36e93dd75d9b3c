package regress

import "math/bits"

// binSet tells which bins of a feature have items, so that a small node looks at
// few bins.
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
