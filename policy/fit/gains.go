package fit

import "math"

// gains prices the changes of a shape. What depends on this shape alone is computed once, because a
// decision compares it with dozens of others.
type gains struct {
	model *SpeedModel
	from  Shape
	fits  [len(knees)]fitFrom
}

// fitFrom is a shape by one fit of a model.
type fitFrom struct {
	seconds  float64 // of a step
	relative terms   // of the step time, divided by it
}

func (m *SpeedModel) gainsFrom(from Shape) (g gains) {
	g.model, g.from = m, from
	for i := range m.fits {
		f := &m.fits[i]
		t := m.facts.termsOf(from, f.knee)
		seconds := dot(&t, &f.coefficients)
		for k := range t {
			t[k] /= seconds
		}
		g.fits[i] = fitFrom{seconds, t}
	}
	return g
}

// fitSeconds are the step times of a shape by each fit of a model.
type fitSeconds [len(knees)]float64

func (g *gains) seconds(to Shape) (seconds fitSeconds) {
	for i := range g.model.fits {
		f := &g.model.fits[i]
		t := g.model.facts.termsOf(to, f.knee)
		seconds[i] = dot(&t, &f.coefficients)
	}
	return seconds
}

// bound returns an upper bound of the ratio of the speed of a shape. By Jensen's inequality, the mean
// of logarithms is at most the logarithm of the mean.
func (g *gains) bound(to Shape, seconds *fitSeconds) float64 {
	sum := 0.0
	for i := range g.model.fits {
		sum += g.model.fits[i].probability * g.fits[i].seconds / seconds[i]
	}
	return sum * float64(to.Workers) / float64(g.from.Workers)
}

// gain returns the logarithm of the ratio of the speed of a shape, and its standard error.
func (g *gains) gain(to Shape, seconds *fitSeconds) (mean, standardError float64) {
	workers := math.Log(float64(to.Workers) / float64(g.from.Workers))
	squares := 0.0
	for i := range g.model.fits {
		f, from := &g.model.fits[i], &g.fits[i]
		gain := workers + math.Log(from.seconds/seconds[i])
		slope := g.model.facts.termsOf(to, f.knee)
		for k := range slope {
			slope[k] = slope[k]/seconds[i] - from.relative[k]
		}
		mean += f.probability * gain
		squares += f.probability * (gain*gain + f.covariance.form(&slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
}
