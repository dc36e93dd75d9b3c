package speed

import "math"

// StepSeconds returns the predicted step time of a shape.
func (m *Model) StepSeconds(s Shape) float64 {
	seconds := 0.0
	for i := range m.fits {
		f := &m.fits[i]
		seconds += f.probability * m.facts.StepSeconds(s, f.coefficients, f.knee)
	}
	return seconds
}

// Speed returns the predicted speed of a shape, as by Facts.Speed.
func (m *Model) Speed(s Shape) float64 { return m.facts.Speed(s, m.StepSeconds(s)) }

// Gain returns the logarithm of the ratio of the speeds of two shapes, and its standard error. Errors
// that both shapes share cancel out.
func (m *Model) Gain(from, to Shape) (mean, standardError float64) {
	workers := math.Log(float64(to.Workers) / float64(from.Workers))
	return m.moments(func(f *kneeFit) (gain float64, slope terms) {
		before, slopeBefore := m.logStep(from, f)
		after, slope := m.logStep(to, f)
		for k := range slope {
			slope[k] -= slopeBefore[k]
		}
		return workers + before - after, slope
	})
}

// StandardError returns the standard error of the logarithm of the step time of a shape.
func (m *Model) StandardError(s Shape) float64 {
	_, standardError := m.moments(func(f *kneeFit) (float64, terms) { return m.logStep(s, f) })
	return standardError
}

// logStep returns the logarithm of the step time of a shape by a fit, with its derivatives by the
// coefficients.
func (m *Model) logStep(s Shape, f *kneeFit) (log float64, slope terms) {
	t := m.facts.termsOf(&s, f.knee)
	seconds := dot(&t, &f.coefficients)
	return math.Log(seconds), t.times(1 / seconds)
}

// moments returns the mean and the standard error of a value, given for each fit with its derivatives by
// the coefficients.
func (m *Model) moments(value func(f *kneeFit) (float64, terms)) (mean, standardError float64) {
	squares := 0.0
	for i := range m.fits {
		f := &m.fits[i]
		v, slope := value(f)
		mean += f.probability * v
		squares += f.probability * (v*v + f.covariance.form(&slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
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

// frontShape is one of the fastest shapes by a speed model, which are in the order of their cores: each is
// faster than all shapes with as many cores or fewer.
type frontShape struct {
	shape Shape
	cores int
	speed float64 // as by Facts.Speed
}

// fewerCores is the penalty of one core, relative to the speed. It is smaller than any gain that
// matters, so that it decides only between equally fast shapes.
const fewerCores = 1e-9

// newFront prices all shapes up to the largest.
func newFront(m *Model, largest Shape) (front []frontShape) {
	servers := []Shape{{}}
	if m.facts.HasServers {
		servers = nil
		for n := range largest.Servers * largest.ServerCores {
			servers = append(servers, Shape{
				Servers: 1 + n/largest.ServerCores, ServerCores: 1 + n%largest.ServerCores,
			})
		}
	}
	fastest := make([]frontShape, largest.Cores()+1) // by number of cores
	for n := range largest.Workers * largest.WorkerCores {
		for _, s := range servers {
			s.Workers, s.WorkerCores = 1+n/largest.WorkerCores, 1+n%largest.WorkerCores
			cores := s.Cores()
			if speed := m.Speed(s); speed > fastest[cores].speed {
				fastest[cores] = frontShape{s, cores, speed}
			}
		}
	}

	highest := 0.0
	for cores, s := range fastest {
		if value := s.speed * (1 - fewerCores*float64(cores)); value > highest {
			front, highest = append(front, s), value
		}
	}
	return front
}

// IsTrusted reports whether the model knows enough shapes to choose a distant one.
func (m *Model) IsTrusted() bool { return m.shapes >= trustedShapes }

// Fastest returns the fastest shape with at most a number of cores, and of equally fast ones one with
// the fewest cores. It is false if none is valid, or if the model is not trusted.
func (m *Model) Fastest(cores int) (best Shape, isFound bool) {
	for _, s := range m.front {
		if s.cores <= cores {
			best, isFound = s.shape, true
		}
	}
	return best, isFound
}

// Cheapest returns the shape with at most a number of cores that has the most speed per core of those
// with a lowest speed; false if there is none, or if the model is not trusted.
func (m *Model) Cheapest(cores int, minSpeed float64) (best Shape, isFound bool) {
	highest := 0.0
	for _, s := range m.front {
		perCore := s.speed / float64(s.cores)
		if s.cores <= cores && s.speed >= minSpeed && perCore > highest {
			best, highest = s.shape, perCore
		}
	}
	return best, highest > 0
}
