package fit

import "math"

// StepTimes are the step times of all shapes by a speed model, as sums of parts. They are valid as
// long as the facts of the model.
type StepTimes struct {
	facts   *Facts
	mean    Coefficients // without that of computation
	compute []kneeCompute
}

// kneeCompute is the computation of workers that can use up to a number of cores, multiplied by the
// probability of that number.
type kneeCompute struct {
	knee        float64
	coreSeconds float64 // of a worker
}

// newStepTimes averages the step times of several fits.
func newStepTimes(f *Facts, fits []kneeFit) StepTimes {
	t := StepTimes{facts: f, compute: make([]kneeCompute, 0, len(fits))}
	for i := range fits {
		fit := &fits[i]
		for term, c := range fit.coefficients {
			t.mean[term] += fit.probability * c
		}
		coreSeconds := fit.probability * fit.coefficients[termCompute] * f.SamplesPerWorker
		t.compute = append(t.compute, kneeCompute{fit.knee, coreSeconds})
	}
	t.mean[termCompute] = 0
	return t
}

// Of returns the step time of a shape.
func (t *StepTimes) Of(s Shape) float64 {
	return dot(t.facts.termsOf(s, 1), t.mean) + t.computeSeconds(s.WorkerCores)
}

// computeSeconds returns the time in which a worker with a number of cores computes.
func (t *StepTimes) computeSeconds(cores int) float64 {
	seconds := 0.0
	for _, c := range t.compute {
		seconds += c.coreSeconds / min(float64(cores), c.knee)
	}
	return seconds
}

// speed returns the samples per second of a shape.
func (t *StepTimes) speed(s Shape) float64 { return t.facts.Speed(s, t.Of(s)) }

// goal is what a search over all shapes looks for.
type goal struct {
	cores   int   // at most
	largest Shape // bounds each number
	// minSpeed is the lowest speed, in samples per second.
	minSpeed float64
	// perCore looks for the most speed per core instead of the most speed.
	perCore bool
}

// best returns the best shape for a goal, and of equally good ones one with the fewest cores. It is
// false if there is none.
func (t *StepTimes) best(g goal) (Shape, bool) {
	s := shapeSearch{steps: t, goal: g}
	s.computeSeconds = t.usefulCores(min(g.largest.WorkerCores, g.cores))
	most := min(g.largest.Workers, g.cores)
	for i := range most {
		// The best shapes come early, so that most others need not be visited.
		w := most - i
		if g.perCore {
			w = i + 1
		}
		if t.facts.Architecture != ParameterServer {
			s.visitWorkers(w)
			continue
		}
		for p := 1; p <= g.largest.Servers && w+p <= g.cores; p++ {
			if canStop := s.visitServers(w, p); canStop {
				break
			}
		}
	}
	return s.found, s.highest > 0
}

// usefulCores returns the computing time of a worker by the number of its cores, from 1, up to the
// number that the worker can use.
func (t *StepTimes) usefulCores(most int) []float64 {
	knee := 1.0
	for _, c := range t.compute {
		if c.coreSeconds > 0 {
			knee = max(knee, c.knee)
		}
	}
	if t.facts.Architecture != Executors { // whose cores also update
		most = int(min(float64(most), math.Ceil(knee)))
	}
	seconds := make([]float64, 0, most)
	for c := range most {
		seconds = append(seconds, t.computeSeconds(c+1))
	}
	return seconds
}

// shapeSearch is a search for a goal.
type shapeSearch struct {
	steps *StepTimes
	goal
	computeSeconds []float64 // see StepTimes.usefulCores
	found          Shape
	highest        float64 // value of found
}

// fewerCores is the penalty of one core, relative to the speed. It is smaller than any gain that
// matters, so that it decides only between equally fast shapes.
const fewerCores = 1e-9

// isWorse reports whether no shape with at most this speed and at least these cores is better than
// the best one so far.
func (s *shapeSearch) isWorse(speed float64, cores int) bool {
	if s.perCore {
		speed /= float64(cores)
	}
	return !(speed > s.highest)
}

func (s *shapeSearch) visit(shape Shape, stepSeconds float64) {
	speed, cores := s.steps.facts.Speed(shape, stepSeconds), float64(shape.Cores())
	value := speed * (1 - fewerCores*cores)
	if s.perCore {
		value = speed / cores
	}
	if value > s.highest && speed >= s.minSpeed {
		s.found, s.highest = shape, value
	}
}

// visitWorkers visits all shapes with a number of workers, and no servers.
func (s *shapeSearch) visitWorkers(w int) {
	for i := range s.computeSeconds[:min(len(s.computeSeconds), s.cores/w)] {
		shape := Shape{Workers: w, WorkerCores: i + 1}
		s.visit(shape, s.steps.Of(shape))
	}
}

// visitServers visits all shapes with a number of workers and servers. It reports whether more
// servers cannot be better.
func (s *shapeSearch) visitServers(w, p int) (canStop bool) {
	shape := Shape{Workers: w, WorkerCores: 1, Servers: p, ServerCores: 1}
	samples := s.steps.facts.Speed(shape, 1)
	shortest := s.computeSeconds[len(s.computeSeconds)-1] + s.steps.mean[termFixed] +
		float64(w)*s.steps.mean[termPerWorker] + float64(p)*s.steps.mean[termPerServer]
	if s.isWorse(samples/shortest, w+p) || samples/shortest < s.minSpeed {
		return true
	}
	terms := s.steps.facts.termsOf(shape, 1)
	update := terms[termUpdate] * s.steps.mean[termUpdate] // of a server with one core
	rest := dot(terms, s.steps.mean) - update

	for i := range s.computeSeconds[:min(len(s.computeSeconds), (s.cores-p)/w)] {
		shape.WorkerCores, shape.ServerCores = i+1, 1
		most := min(s.largest.ServerCores, (s.cores-w*shape.WorkerCores)/p)
		without := rest + s.computeSeconds[i] // time without updates
		speed := samples / (without + update/float64(most))
		if s.isWorse(speed, shape.Cores()) || speed < s.minSpeed {
			continue
		}
		for ; shape.ServerCores <= most; shape.ServerCores++ {
			s.visit(shape, without+update/float64(shape.ServerCores))
		}
	}
	return false
}

// Fastest returns the fastest shape with at most a number of cores, by a speed model, and of equally
// fast ones one with the fewest cores. It is false if none is valid.
func Fastest(m SpeedModel, cores int, largest Shape) (Shape, bool) {
	t := m.Steps()
	return t.best(goal{cores: cores, largest: largest})
}
