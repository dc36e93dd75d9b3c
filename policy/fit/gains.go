package fit

import (
	"math"
	"slices"
)

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
		g.fits[i] = fitFrom{seconds, t.times(1 / seconds)}
	}
	return g
}

// priced is the step time of a shape by each fit of a model.
type priced struct {
	shape   Shape
	weights []float64 // of the fits
	terms   terms     // for a knee of one core
	seconds [len(knees)]float64
}

func (g *gains) price(to Shape) (p priced) {
	p.shape = to
	p.weights = g.model.weights(max(to.WorkerCores, g.from.WorkerCores))
	p.terms = g.model.facts.termsOf(to, 1)
	others, samples := p.terms, p.terms[termCompute]
	others[termCompute] = 0
	for i := range p.weights {
		f := &g.model.fits[i]
		compute := f.coefficients[termCompute] * samples / f.usedCores(to)
		p.seconds[i] = dot(&others, &f.coefficients) + compute
	}
	return p
}

// bound returns an upper bound of the ratio of the speed of a shape. By Jensen's inequality, the mean
// of logarithms is at most the logarithm of the mean.
func (g *gains) bound(p *priced) float64 {
	sum := 0.0
	for i, weight := range p.weights {
		sum += weight * g.fits[i].seconds / p.seconds[i]
	}
	return sum * float64(p.shape.Workers) / float64(g.from.Workers)
}

// gain returns the logarithm of the ratio of the speed of a shape, and its standard error.
func (g *gains) gain(p *priced) (mean, standardError float64) {
	workers := float64(p.shape.Workers) / float64(g.from.Workers)
	squares := 0.0
	for i, weight := range p.weights {
		f, from := &g.model.fits[i], &g.fits[i]
		gain := math.Log(workers * from.seconds / p.seconds[i])
		slope := p.terms
		slope[termCompute] /= f.usedCores(p.shape)
		slope = slope.times(1 / p.seconds[i])
		for k := range slope {
			slope[k] -= from.relative[k]
		}
		mean += weight * gain
		squares += weight * (gain*gain + f.covariance.form(&slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
}

// usedCores returns the cores that a worker can use.
func (f *kneeFit) usedCores(s Shape) float64 { return min(float64(s.WorkerCores), f.knee) }

// weights returns the probabilities of the first fits. Up to the most cores that a worker of the job
// has had, all higher knees have the same fit, which stands for them.
func (m *SpeedModel) weights(cores int) []float64 {
	if float64(cores) <= m.seenKnee {
		return m.seenWeights
	}
	return m.allWeights
}

// setWeights computes the weights of a model whose workers have had up to a number of cores.
func (m *SpeedModel) setWeights(seenCores int) {
	for i := range m.fits {
		m.allWeights = append(m.allWeights, m.fits[i].probability)
	}
	for i := range m.fits {
		if m.fits[i].knee < float64(seenCores) {
			continue
		}
		rest := 0.0
		for _, weight := range m.allWeights[i:] {
			rest += weight
		}
		m.seenKnee = m.fits[i].knee
		m.seenWeights = append(slices.Clone(m.allWeights[:i]), rest)
		return
	}
}
