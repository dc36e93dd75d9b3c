package fit

import (
	"slices"
	"sort"
)

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
func newShapeFront(t *StepTimes, largest Shape) shapeFront {
	fastest := make(shapeFront, largest.Cores()+1) // by number of cores
	compute := t.usefulCores(largest.WorkerCores)
	fastest.addBatch(t, largest, 0, compute)
	for _, b := range t.facts.Batches {
		scaled := slices.Clone(compute)
		for i := range scaled {
			scaled[i] *= float64(b.Samples) / t.facts.SamplesPerWorker
		}
		fastest.addBatch(t, largest, b.Samples, scaled)
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

// addBatch adds the shapes with a batch size to shapes by their cores. A worker computes this long
// by the number of its cores.
func (f shapeFront) addBatch(t *StepTimes, largest Shape, samples int, compute []float64) {
	for w := 1; w <= largest.Workers; w++ {
		s := Shape{Workers: w, WorkerCores: 1, Samples: samples}
		if t.facts.Architecture != ParameterServer {
			f.addWorkers(t, s, len(compute))
			continue
		}
		for s.Servers = 1; s.Servers <= largest.Servers; s.Servers++ {
			f.addServers(t, s, compute, largest.ServerCores)
		}
	}
}

// addWorkers adds the shapes with a number of workers, and no servers.
func (f shapeFront) addWorkers(t *StepTimes, s Shape, mostCores int) {
	for s.WorkerCores = 1; s.WorkerCores <= mostCores; s.WorkerCores++ {
		f.add(s, t.speed(s))
	}
}

// addServers adds the shapes with a number of workers and servers.
func (f shapeFront) addServers(t *StepTimes, s Shape, compute []float64, mostCores int) {
	s.ServerCores = 1
	progress := t.facts.progress(&s)
	terms := t.facts.termsOf(&s, 1)
	update := terms[termUpdate] * t.mean[termUpdate] // of a server with one core
	rest := dot(&terms, &t.mean) - update
	for d := 1; d <= mostCores; d++ {
		s.ServerCores = d
		others := rest + update/float64(d)
		for i, seconds := range compute {
			s.WorkerCores = i + 1
			f.add(s, progress/(others+seconds))
		}
	}
}

// add keeps a shape if it is the fastest with its number of cores.
func (f shapeFront) add(s Shape, speed float64) {
	if cores := s.Cores(); speed > f[cores].speed {
		f[cores] = frontShape{s, cores, speed}
	}
}

// upTo returns the shapes with at most a number of cores.
func (f shapeFront) upTo(cores int) shapeFront {
	return f[:sort.Search(len(f), func(i int) bool { return f[i].cores > cores })]
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
// fast ones one with the fewest cores. It is false if none is valid.
func Fastest(m *SpeedModel, cores int) (Shape, bool) {
	return m.front.upTo(cores).fastest()
}
