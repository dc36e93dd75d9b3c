package regress

import (
	"math/bits"
	"sync"
)

// parallel divides the numbers 0 to n-1 into at most threads ranges, none much shorter than least,
// calls do for each range concurrently, and returns the number of ranges.
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

// part returns the begin and end of a range of n numbers.
func part(run, runs, n int) (from, to int) { return n * run / runs, n * (run + 1) / runs }

// progressCounter counts trees and reports the count, one call at a time.
type progressCounter struct {
	mutex         sync.Mutex
	report        func(done, planned int)
	done, planned int
}

func newProgress(tell func(done, planned int), planned int) *progressCounter {
	return &progressCounter{report: tell, planned: planned}
}

func (p *progressCounter) add(trees int) {
	if p.report == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += trees
	p.report(p.done, p.planned)
}

// advanceTo counts planned trees that are not needed.
func (p *progressCounter) advanceTo(done int) {
	p.mutex.Lock()
	missing := done - p.done
	p.mutex.Unlock()
	if missing > 0 {
		p.add(missing)
	}
}

// stream is a small random number generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014). Every
// tree and every node has its own, derived from the seed, the tree's number and the node's path, so
// that results do not depend on threads, nor on the depth or size of a forest.
type stream uint64

// split returns an independent stream for branch n of s.
func (s stream) split(n uint64) stream {
	return stream(mix(uint64(s) ^ mix(n+0x9e3779b97f4a7c15)))
}

// next returns 64 random bits.
func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// below returns a number in [0, n), with a bias below n/2^64.
func (s *stream) below(n int) int {
	high, _ := bits.Mul64(s.next(), uint64(n))
	return int(high)
}

// shuffle shuffles the numbers (Fisher-Yates).
func (s *stream) shuffle(numbers []int) {
	for i := len(numbers) - 1; i > 0; i-- {
		j := s.below(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
}

// choose moves a random sample of n rows to the front.
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
