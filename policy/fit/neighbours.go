package fit

import "math"

// number returns a number of the shape: workers, cores of a worker, servers, cores of a server.
func (s *Shape) number(i int) *int {
	return [...]*int{&s.Workers, &s.WorkerCores, &s.Servers, &s.ServerCores}[i]
}

// numbers of a shape.
const numbers = 4

// Neighbours returns the valid shapes near a shape: each number one more or less, and exchanges,
// which raise one number by one or two, lower another by one or two, and need no more cores. At equal
// cores, single steps alone could not move.
func (s Shape) Neighbours(a Architecture, largest Shape) []Shape {
	var found []Shape
	add := func(n Shape) {
		if n.IsValid(a) && n.isWithin(largest) {
			found = append(found, n)
		}
	}
	for i := range numbers {
		for _, step := range []int{1, -1} {
			n := s
			*n.number(i) += step
			add(n)
		}
	}
	for i := range numbers * numbers * 4 {
		up, down := i/(4*numbers), i/4%numbers
		n := s
		*n.number(up) += 1 + i%2
		*n.number(down) -= 1 + i/2%2
		if up != down && n.Cores() <= s.Cores() {
			add(n)
		}
	}
	return found
}

// fastest returns the shape with the highest value among all with at most a number of cores. The
// value of a shape is a function of the logarithm of its speed. It is false if none is valid.
func fastest(
	j *ResizableJob, cores int, largest Shape, value func(s Shape, logSpeed float64) float64,
) (best Shape, ok bool) {
	highest := math.Inf(-1)
	visit := func(s Shape) {
		if s.Cores() > cores || !s.IsValid(j.Facts.Architecture) {
			return
		}
		logSpeed := math.Log(j.Facts.Speed(s, j.Model.StepSeconds(s)))
		if v := value(s, logSpeed); v > highest {
			best, highest, ok = s, v, true
		}
	}
	for w := 1; w <= largest.Workers; w++ {
		for c := 1; c <= largest.WorkerCores && w*c <= cores; c++ {
			if j.Facts.Architecture != ParameterServer {
				visit(Shape{Workers: w, WorkerCores: c})
				continue
			}
			for p := 1; p <= largest.Servers; p++ {
				for k := 1; k <= largest.ServerCores && w*c+p*k <= cores; k++ {
					visit(Shape{w, c, p, k})
				}
			}
		}
	}
	return best, ok
}

// Fastest returns the fastest shape with at most a number of cores, by a speed model, and of equally
// fast ones one with the fewest cores.
func Fastest(f Facts, m SpeedModel, cores int, largest Shape) (Shape, bool) {
	j := &ResizableJob{Facts: f, Model: m}
	return fastest(j, cores, largest, func(s Shape, logSpeed float64) float64 {
		return logSpeed - 1e-9*float64(s.Cores())
	})
}
