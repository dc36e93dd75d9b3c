package fit

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
	found := make([]Shape, 0, 2*numbers+4*numbers*numbers)
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
