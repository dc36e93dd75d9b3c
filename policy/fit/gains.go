package fit

import (
	"math"
	"slices"
)

// gains prices the changes of a shape. What depends on this shape alone is computed once, because a
// decision compares it with dozens of others.
type gains struct {
	model    *SpeedModel
	from     Shape
	progress float64 // of a step
	fits     [len(knees)]fitFrom
}

// fitFrom is a shape by one fit of a model.
type fitFrom struct {
	seconds  float64 // of a step
	relative terms   // of the step time, divided by it
}

func (m *SpeedModel) gainsFrom(from Shape) (g gains) {
	g.model, g.from, g.progress = m, from, m.facts.progress(&from)
	for i := range m.fits {
		f := &m.fits[i]
		t := m.facts.termsOf(&from, f.knee)
		seconds := dot(&t, &f.coefficients)
		g.fits[i] = fitFrom{seconds, t.times(1 / seconds)}
	}
	return g
}

// bound returns an upper bound of the ratio of the speed of a shape. By Jensen's inequality, the mean
// of logarithms is at most the logarithm of the mean.
func (g *gains) bound(to *Shape) float64 {
	t := g.model.facts.termsOf(to, 1)
	samples := t[termCompute]
	t[termCompute] = 0
	sum := 0.0
	for i, weight := range g.weights(to) {
		f := &g.model.fits[i]
		compute := f.coefficients[termCompute] * samples / f.usedCores(to)
		sum += weight * g.fits[i].seconds / (dot(&t, &f.coefficients) + compute)
	}
	return sum * g.progressRatio(to)
}

// gain returns the logarithm of the ratio of the speed of a shape, and its standard error.
func (g *gains) gain(to *Shape) (mean, standardError float64) {
	progress := g.progressRatio(to)
	squares := 0.0
	for i, weight := range g.weights(to) {
		f, from := &g.model.fits[i], &g.fits[i]
		t := g.model.facts.termsOf(to, f.knee)
		seconds := dot(&t, &f.coefficients)
		gain := math.Log(progress * from.seconds / seconds)
		slope := t.times(1 / seconds)
		for k := range slope {
			slope[k] -= from.relative[k]
		}
		mean += weight * gain
		squares += weight * (gain*gain + f.covariance.form(&slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
}

// progressRatio returns the progress of a step in a shape, divided by that in the present one.
func (g *gains) progressRatio(to *Shape) float64 {
	return g.model.facts.progress(to) / g.progress
}

// weights returns the probabilities of the fits for the present shape and another one.
func (g *gains) weights(to *Shape) []float64 {
	return g.model.weights(max(to.WorkerCores, g.from.WorkerCores))
}

// usedCores returns the cores that a worker can use.
func (f *kneeFit) usedCores(s *Shape) float64 { return min(float64(s.WorkerCores), f.knee) }

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
