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
	terms    shapeTerms
	progress float64             // of a step
	seconds  [len(knees)]float64 // of a step, by the fits
}

// shapeTerms are the terms of a shape for any knee.
type shapeTerms struct {
	terms                  // for a knee of one core
	cores, samples float64 // of a worker
}

// anyKnee returns the terms of a shape.
func (f *Facts) anyKnee(s *Shape) shapeTerms {
	return shapeTerms{f.termsOf(s, 1), float64(s.WorkerCores), f.samples(s)}
}

// of returns the terms for the knee of a fit.
func (t *shapeTerms) of(f *kneeFit) terms {
	all := t.terms
	all[termCompute] = t.samples / min(t.cores, f.knee)
	return all
}

// gainsFrom prices the changes of a shape.
func (m *SpeedModel) gainsFrom(from Shape) (g gains) {
	g.model, g.from, g.progress = m, from, m.facts.progress(&from)
	g.terms = m.facts.anyKnee(&from)
	for i := range m.fits {
		f := &m.fits[i]
		t := g.terms.of(f)
		g.seconds[i] = dot(&t, &f.coefficients)
	}
	return g
}

// bound returns an upper bound of the ratio of the speed of a shape. By Jensen's inequality, the mean
// of logarithms is at most the logarithm of the mean.
func (g *gains) bound(to *Shape) float64 {
	all := g.model.facts.anyKnee(to)
	sum := 0.0
	for i, weight := range g.weights(to) {
		f := &g.model.fits[i]
		// With the copy that shapeTerms.of makes, BenchmarkPlan/learned/all takes 7.9 instead of 5.5 ms.
		all.terms[termCompute] = all.samples / min(all.cores, f.knee)
		sum += weight * g.seconds[i] / dot(&all.terms, &f.coefficients)
	}
	return sum * g.progressRatio(to)
}

// gain returns the logarithm of the ratio of the speed of a shape, and its standard error.
func (g *gains) gain(to *Shape) (mean, standardError float64) {
	all, progress := g.model.facts.anyKnee(to), g.progressRatio(to)
	squares := 0.0
	for i, weight := range g.weights(to) {
		f := &g.model.fits[i]
		t, from := all.of(f), g.terms.of(f)
		seconds := dot(&t, &f.coefficients)
		gain := math.Log(progress * g.seconds[i] / seconds)
		slope := t.times(1 / seconds)
		for k := range slope {
			slope[k] -= from[k] / g.seconds[i]
		}
		mean += weight * gain
		squares += weight * (gain*gain + f.covariance.form(&slope))
	}
	return mean, math.Sqrt(max(0, squares-mean*mean))
}

// standardError returns the standard error of the logarithm of the present step time.
func (g *gains) standardError() float64 {
	mean, squares := 0.0, 0.0
	for i, weight := range g.weights(&g.from) {
		f := &g.model.fits[i]
		t := g.terms.of(f)
		slope := t.times(1 / g.seconds[i])
		seconds := math.Log(g.seconds[i])
		mean += weight * seconds
		squares += weight * (seconds*seconds + f.covariance.form(&slope))
	}
	return math.Sqrt(max(0, squares-mean*mean))
}

// progressRatio returns the progress of a step in a shape, divided by that in the present one.
func (g *gains) progressRatio(to *Shape) float64 {
	return g.model.facts.progress(to) / g.progress
}

// weights returns the probabilities of the fits for the present shape and another one.
func (g *gains) weights(to *Shape) []float64 {
	return g.model.weights(max(to.WorkerCores, g.from.WorkerCores))
}

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
