package fit

import "math"

// StepSeconds returns the predicted step time of a shape.
func (m *SpeedModel) StepSeconds(s Shape) float64 {
	seconds := 0.0
	t := m.facts.termsOf(&s, 1)
	for i := range m.fits {
		f := &m.fits[i]
		t[termCompute] = m.facts.computeTerm(&s, f.knee)
		seconds += f.probability * dot(&t, &f.coefficients)
	}
	return seconds
}

func (m *SpeedModel) speed(s Shape) float64 { return m.facts.Speed(s, m.StepSeconds(s)) }

// gains prices the changes of a shape.
type gains struct {
	model    *SpeedModel
	progress float64   // of a step
	seconds  []logStep // of a step, by fit
}

// logStep is the logarithm of a step time, with its derivatives by the coefficients.
type logStep struct {
	log   float64
	slope terms
}

func (m *SpeedModel) gainsFrom(from Shape) *gains {
	return &gains{m, m.facts.progress(&from), m.logSteps(from)}
}

// logSteps returns the step times of a shape by each fit.
func (m *SpeedModel) logSteps(s Shape) []logStep {
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

// to returns the logarithm of the ratio of the speed of a shape, and its standard error. Errors that
// both shapes share cancel out.
func (g *gains) to(to Shape) (mean, standardError float64) {
	progress := math.Log(g.model.facts.progress(&to) / g.progress)
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
func (m *SpeedModel) Gain(from, to Shape) (mean, standardError float64) {
	return m.gainsFrom(from).to(to)
}

// standardError returns the standard error of the logarithm of the step time of a shape.
func (m *SpeedModel) standardError(s Shape) float64 {
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
