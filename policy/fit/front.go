package fit

// shapeFront holds the fastest shapes by a speed model, by rising cores and speed: each is faster
// than all shapes with as many cores or fewer.
type shapeFront []frontShape

type frontShape struct {
	shape Shape
	cores int
	speed float64 // as by Facts.Speed
}

// fewerCores is the penalty of one core, relative to the speed. It is smaller than any gain that
// matters, so that it decides only between equally fast shapes.
const fewerCores = 1e-9

// newShapeFront prices all shapes up to the largest, with each batch size.
func newShapeFront(m *SpeedModel, largest Shape) shapeFront {
	fastest := make(shapeFront, largest.Cores()+1) // by number of cores
	for s := range m.facts.shapes(largest) {
		cores := s.Cores()
		if speed := m.speed(s); speed > fastest[cores].speed {
			fastest[cores] = frontShape{s, cores, speed}
		}
	}
	var front shapeFront
	highest := 0.0
	for cores, s := range fastest {
		if value := s.speed * (1 - fewerCores*float64(cores)); value > highest {
			front, highest = append(front, s), value
		}
	}
	return front
}

// shapes yields all shapes up to the largest, with each batch size.
func (f *Facts) shapes(largest Shape) func(yield func(Shape) bool) {
	batches := []int{0}
	for _, b := range f.Batches {
		batches = append(batches, b.Samples)
	}
	servers := []Shape{{}}
	if f.Architecture == ParameterServer {
		servers = nil
		for n := range largest.Servers * largest.ServerCores {
			servers = append(servers, Shape{
				Servers: 1 + n/largest.ServerCores, ServerCores: 1 + n%largest.ServerCores,
			})
		}
	}
	return func(yield func(Shape) bool) {
		for _, samples := range batches {
			for n := range largest.Workers * largest.WorkerCores {
				for _, s := range servers {
					s.Workers, s.WorkerCores = 1+n/largest.WorkerCores, 1+n%largest.WorkerCores
					s.Samples = samples
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// upTo returns the shapes with at most a number of cores.
func (f shapeFront) upTo(cores int) shapeFront {
	n := 0
	for n < len(f) && f[n].cores <= cores {
		n++
	}
	return f[:n]
}

// fastest returns the fastest shape; false if there is none.
func (f shapeFront) fastest() (Shape, bool) {
	if len(f) == 0 {
		return Shape{}, false
	}
	return f[len(f)-1].shape, true
}

// cheapest returns the shape with the most speed per core of those with a lowest speed; false if there
// is none.
func (f shapeFront) cheapest(minSpeed float64) (Shape, bool) {
	var found Shape
	highest := 0.0
	for i := len(f) - 1; i >= 0 && f[i].speed >= minSpeed; i-- {
		if perCore := f[i].speed / float64(f[i].cores); perCore >= highest {
			found, highest = f[i].shape, perCore
		}
	}
	return found, highest > 0
}

// Fastest returns the fastest shape with at most a number of cores, by a speed model, and of equally
// fast ones one with the fewest cores. It is false if none is valid, or if the model was learned from too
// few shapes to be trusted.
func Fastest(m *SpeedModel, cores int) (Shape, bool) {
	return m.front.upTo(cores).fastest()
}
