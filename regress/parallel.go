package regress

import (
	"math/bits"
	"sync"
)

// parallel cuts the numbers 0 to n-1 into at most as many runs as there are
// threads, none much shorter than least, calls do for each of them at once, and
// returns how many there were.
func parallel(threads, n, least int, do func(run, from, to int)) (runs int) {
	runs = max(1, min(threads, n/max(least, 1)))
	var others sync.WaitGroup
	for run := 1; run < runs; run++ {
		others.Go(func() {
			from, to := part(run, runs, n)
			do(run, from, to)
		})
	}
	from, to := part(0, runs, n)
	do(0, from, to)
	others.Wait()
	return runs
}

// part returns where a run of n numbers begins and ends.
func part(run, runs, n int) (from, to int) { return n * run / runs, n * (run + 1) / runs }

// progress counts trees and tells one listener, one call at a time.
type progress struct {
	mutex         sync.Mutex
	tell          func(done, planned int)
	done, planned int
}

func newProgress(tell func(done, planned int), planned int) *progress {
	return &progress{tell: tell, planned: planned}
}

func (p *progress) add(trees int) {
	if p.tell == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += trees
	p.tell(p.done, p.planned)
}

// reach counts trees that were planned and turned out not to be needed.
func (p *progress) reach(done int) {
	p.mutex.Lock()
	missing := done - p.done
	p.mutex.Unlock()
	if missing > 0 {
		p.add(missing)
	}
}

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
