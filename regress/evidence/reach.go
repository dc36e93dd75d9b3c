package evidence

import "math"

// reachPrior is the distribution of the probability that a run reaches a level: beta distributions
// on a grid, weighted by the runs of all batch sizes (beta-binomial, empirical Bayes averaged over
// the grid).
type reachPrior struct{ weights []float64 }

var (
	reachMeans          = []float64{.02, .1, .25, .5, .75, .9, .98}
	reachConcentrations = []float64{.02, .06, .2, .6, 2, 6, 20}
)

const (
	concentrationPrior, concentrationWidth = .15, 1.5

	// neighbourRuns is the maximum weight, in runs, of another batch size.
	neighbourRuns = 2.0
)

// newReachPrior weights the grid by the likelihood of a level's counts.
func newReachPrior(m *AccuracyModel, level int) reachPrior {
	var r reachPrior
	most := math.Inf(-1)
	for _, mean := range reachMeans {
		for _, kappa := range reachConcentrations {
			z := math.Log(kappa/concentrationPrior) / concentrationWidth
			w := -z * z / 2
			for i := range m.Batches {
				w += betaBinomial(&m.Batches[i].Passages[level], mean, kappa)
			}
			r.weights = append(r.weights, w)
			most = max(most, w)
		}
	}
	sum := 0.0
	for i, w := range r.weights {
		r.weights[i] = math.Exp(w - most)
		sum += r.weights[i]
	}
	for i := range r.weights {
		r.weights[i] /= sum
	}
	return r
}

// betaBinomial returns the log likelihood of a sequence of successes and failures.
func betaBinomial(p *Passage, mean, kappa float64) float64 {
	likelihood := 0.0
	for i := range p.Reached {
		likelihood += math.Log((mean*kappa + float64(i)) / (kappa + float64(i)))
	}
	for i := range p.Tried - p.Reached {
		n := float64(p.Reached + i)
		likelihood += math.Log(((1-mean)*kappa + float64(i)) / (kappa + n))
	}
	return likelihood
}

// probability returns the probability that a run reaches the level, after k of n runs did.
func (r *reachPrior) probability(k, n float64) float64 {
	p, i := 0.0, 0
	for _, mean := range reachMeans {
		for _, kappa := range reachConcentrations {
			p += r.weights[i] * (k + mean*kappa) / (n + kappa)
			i++
		}
	}
	return min(p, 1)
}

// neighbours returns the weighted counts of all batch sizes for a batch size (log2 b) without runs:
// at most neighbourRuns each, less with the distance.
func (m *AccuracyModel) neighbours(b float64, level int) (k, n float64) {
	for i := range m.Batches {
		p := &m.Batches[i].Passages[level]
		if p.Tried == 0 {
			continue
		}
		octaves := math.Log2(float64(m.Batches[i].BatchSize)) - b
		weight := math.Exp(-octaves * octaves / 2)
		weight *= min(1, neighbourRuns/float64(p.Tried))
		k += weight * float64(p.Reached)
		n += weight * float64(p.Tried)
	}
	return k, n
}
