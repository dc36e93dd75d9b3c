package fit

// neighbourSteps are the changes of a shape to its neighbours: each number one more or less, and then
// exchanges, which raise one number by one or two and lower another by one or two.
var neighbourSteps = newNeighbourSteps()

func newNeighbourSteps() (steps []Shape) {
	number := func(s *Shape, i int) *int {
		return [...]*int{&s.Workers, &s.WorkerCores, &s.Servers, &s.ServerCores}[i]
	}
	const numbers = 4
	for i := range numbers {
		for _, step := range []int{1, -1} {
			var s Shape
			*number(&s, i) = step
			steps = append(steps, s)
		}
	}
	for i := range numbers * numbers * 4 {
		up, down := i/(4*numbers), i/4%numbers
		if up == down {
			continue
		}
		var s Shape
		*number(&s, up) = 1 + i%2
		*number(&s, down) = -1 - i/2%2
		steps = append(steps, s)
	}
	return steps
}

// singleSteps is the number of steps before the exchanges.
const singleSteps = 8

// Neighbours returns the valid shapes near a shape: each number one more or less, and exchanges,
// which raise one number by one or two, lower another by one or two, and need no more cores. At equal
// cores, single steps alone could not move.
func (s Shape) Neighbours(a Architecture, largest Shape) []Shape {
	var found []Shape
	for i := range neighbourSteps {
		n := s
		n.add(&neighbourSteps[i])
		isExchange := i >= singleSteps
		if n.IsValid(a) && n.isWithin(&largest) && !(isExchange && n.Cores() > s.Cores()) {
			found = append(found, n)
		}
	}
	return found
}

// withBatches returns a shape with each allowed batch size.
func (f *Facts) withBatches(s Shape) []Shape {
	if len(f.Batches) == 0 {
		return nil
	}
	s.Samples = 0
	found := []Shape{s}
	for i := range f.Batches {
		s.Samples = f.Batches[i].Samples
		found = append(found, s)
	}
	return found
}

// add changes the numbers of the shape, but not its batch size.
func (s *Shape) add(change *Shape) {
	s.Workers += change.Workers
	s.WorkerCores += change.WorkerCores
	s.Servers += change.Servers
	s.ServerCores += change.ServerCores
}
