package speed

import "math"

// StepSeconds returns the predicted step time of a shape.
func (m *Model) StepSeconds(s Shape) float64 {
	seconds := 0.0
	t := m.facts.termsOf(&s, 1)
	for i := range m.fits {
		f := &m.fits[i]
		t[termCompute] = m.facts.computeTerm(&s, f.knee)
		seconds += f.probability * dot(&t, &f.coefficients)
	}
	return seconds
}

// Speed returns the predicted speed of a shape, as by Facts.Speed.
func (m *Model) Speed(s Shape) float64 { return m.facts.Speed(s, m.StepSeconds(s)) }

// Gains prices the changes of a shape.
type Gains struct {
	model   *Model
	workers float64
	seconds []logStep // of a step, by fit
}

// logStep is the logarithm of a step time, with its derivatives by the coefficients.
type logStep struct {
	log   float64
	slope terms
}

// GainsFrom prices the changes of a shape.
func (m *Model) GainsFrom(from Shape) *Gains {
	return &Gains{m, float64(from.Workers), m.logSteps(from)}
}

// logSteps returns the step times of a shape by each fit.
func (m *Model) logSteps(s Shape) []logStep {
	steps := make([]logStep, len(m.fits))
	t := m.facts.termsOf(&s, 1)
	for i := range m.fits {
		f := &m.fits[i]
		t[termCompute] = m.facts.computeTerm(&s, f.knee)
		seconds := dot(&t, &f.coefficients)
		steps[i] = logStep{math.Log(seconds), t.times(1 / seconds)}
	}
	return steps
}

// To returns the logarithm of the ratio of the speed of a shape, and its standard error. Errors that
// both shapes share cancel out.
func (g *Gains) To(to Shape) (mean, standardError float64) {
	progress := math.Log(float64(to.Workers) / g.workers)
	squares := 0.0
	for i, step := range g.model.logSteps(to) {
		f := &g.model.fits[i]
		for k := range step.slope {
			step.slope[k] -= g.seconds[i].slope[k]
		}
		gain := progress + g.seconds[i].log - step.log
		mean += f.probability * gain
		squares += f.probability * (gain*gain + f.covariance.form(&step.slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
}

// Gain returns the logarithm of the ratio of the speeds of two shapes, and its standard error.
func (m *Model) Gain(from, to Shape) (mean, standardError float64) {
	return m.GainsFrom(from).To(to)
}

// StandardError returns the standard error of the logarithm of the step time of a shape.
func (m *Model) StandardError(s Shape) float64 {
	mean, squares := 0.0, 0.0
	for i, step := range m.logSteps(s) {
		f := &m.fits[i]
		mean += f.probability * step.log
		squares += f.probability * (step.log*step.log + f.covariance.form(&step.slope))
	}
	return math.Sqrt(max(0, squares-mean*mean))
}

// form returns the quadratic form of a vector.
func (m *matrix) form(v *terms) float64 {
	sum := 0.0
	for i := range v {
		row := v[i] * m[i][i]
		for j := range i {
			row += 2 * v[j] * m[i][j]
		}
		sum += v[i] * row
	}
	return sum
}

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

// newShapeFront prices all shapes up to the largest.
func newShapeFront(m *Model, largest Shape) shapeFront {
	fastest := make(shapeFront, largest.Cores()+1) // by number of cores
	for s := range m.facts.shapes(largest) {
		cores := s.Cores()
		if speed := m.Speed(s); speed > fastest[cores].speed {
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

// shapes yields all shapes up to the largest.
func (f *Facts) shapes(largest Shape) func(yield func(Shape) bool) {
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
		for n := range largest.Workers * largest.WorkerCores {
			for _, s := range servers {
				s.Workers, s.WorkerCores = 1+n/largest.WorkerCores, 1+n%largest.WorkerCores
				if !yield(s) {
					return
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

// IsTrusted reports whether the model knows enough shapes to choose a distant one.
func (m *Model) IsTrusted() bool { return m.shapes >= trustedShapes }

// Fastest returns the fastest shape with at most a number of cores, and of equally fast ones one with
// the fewest cores. It is false if none is valid, or if the model is not trusted.
func (m *Model) Fastest(cores int) (Shape, bool) { return m.front.upTo(cores).fastest() }

// Cheapest returns the shape with at most a number of cores that has the most speed per core of those
// with a lowest speed; false if there is none, or if the model is not trusted.
func (m *Model) Cheapest(cores int, minSpeed float64) (Shape, bool) {
	return m.front.upTo(cores).cheapest(minSpeed)
}
