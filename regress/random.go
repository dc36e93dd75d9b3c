package regress

import "math/bits"

// stream is a small random number generator (SplitMix64: Steele, Lea, Flood,
// OOPSLA 2014). Every tree and every node owns one, derived from the seed, the
// tree's number and the node's path, so that results depend on neither threads
// nor on how deep or how long a forest is grown.
type stream uint64

// split derives an independent stream for branch number n of s.
func (s stream) split(n uint64) stream {
	return stream(mix(uint64(s) ^ mix(n+0x9e3779b97f4a7c15)))
}

// next returns 64 random bits.
func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// below returns a number in [0, n). Its bias is under n/2^64.
func (s *stream) below(n int) int {
	high, _ := bits.Mul64(s.next(), uint64(n))
	return int(high)
}

// shuffle brings the numbers into random order (Fisher-Yates).
func (s *stream) shuffle(numbers []int) {
	for i := len(numbers) - 1; i > 0; i-- {
		j := s.below(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
}

// choose brings a random choice of n rows to the front.
func (s *stream) choose(rows []int32, n int) {
	for i := range n {
		j := i + s.below(len(rows)-i)
		rows[i], rows[j] = rows[j], rows[i]
	}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
