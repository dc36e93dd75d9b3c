package evidence

import (
	"context"
	"math"
)

// The grids and constants of the Gaussian process of passages over batch sizes,
// and the priors of their variances (docs/decisions/0016).
var (
	passageAmplitudes = []float64{.1, .2, .4, .8, 1.6}
	passageLengths    = []float64{1, 1.5, 2, 3, 4, 6}
	passageEffects    = []float64{.03, .06, .12, .25}
)

const (
	passageConstant = 4.0  // variance of the intercept
	passageSlope    = 0.25 // variance of the slope per octave, about passageCenter
	passageCenter   = 7.0  // log2 of the batch size

	priorPassageDeviation = 0.15 // of the log passage of a run
	modelPassageWeight    = 4.0  // weight of that prior for a model
	levelPassageWeight    = 10.0 // weight of the model for a level, and of a level for a batch size
)

// passageVariances pools the variances of log passages.
type passageVariances struct {
	level   []float64 // of a run, by level
	degrees float64
}

func (m *AccuracyModel) variances() passageVariances {
	levels := make([]spread, len(m.Levels))
	var all spread
	for i := range m.Batches {
		for k, p := range m.Batches[i].Passages {
			s := spread{p.Squares, math.Max(float64(p.Reached-1), 0)}
			levels[k].add(s)
			all.add(s)
		}
	}
	v := passageVariances{degrees: priorRunDegrees}
	for i := range m.Batches {
		v.degrees += float64(m.Batches[i].Runs - 1)
	}
	model := all.shrunk(priorPassageDeviation*priorPassageDeviation, modelPassageWeight)
	for _, s := range levels {
		v.level = append(v.level, s.shrunk(model, levelPassageWeight))
	}
	return v
}

// ownVariance returns the variance of one level at one batch size.
func (v *passageVariances) ownVariance(k int, p *Passage) float64 {
	free := math.Max(float64(p.Reached-1), 0)
	return spread{p.Squares, free}.shrunk(v.level[k], levelPassageWeight)
}

// levelProcess is the Gaussian process of the passages of one level.
type levelProcess struct {
	batches []float64 // log2
	weights []float64
	inverse []float64
}

// kernel of the passages at two batch sizes.
func (m *AccuracyModel) kernel(b, c float64) float64 {
	z := (b - c) / m.Length
	return m.Amplitude*m.Amplitude*matern52(z*z) + passageConstant +
		passageSlope*(b-passageCenter)*(c-passageCenter)
}

// level conditions the process of one level on its passages; the likelihood is 0 if no run reached
// it.
func (m *AccuracyModel) level(k int, v *passageVariances) (*levelProcess, float64, bool) {
	l := &levelProcess{}
	var y, noise []float64
	for i := range m.Batches {
		p := &m.Batches[i].Passages[k]
		if p.Reached > 0 {
			l.batches = append(l.batches, math.Log2(float64(m.Batches[i].BatchSize)))
			y = append(y, p.Mean)
			noise = append(noise, v.ownVariance(k, p)/float64(p.Reached))
		}
	}
	n := len(y)
	c := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			c[i*n+j] = m.kernel(l.batches[i], l.batches[j])
		}
		c[i*n+i] += m.Effect*m.Effect + noise[i]
	}
	factor, ok := factorize(n, c)
	if !ok {
		return nil, math.Inf(-1), false
	}
	l.weights = factor.solve(y)
	likelihood := -dot(l.weights, y)/2 - factor.logDeterminant()/2
	l.inverse = factor.inverse()
	return l, likelihood, true
}

// predict returns mean and variance of the passage at an unmeasured batch size.
func (l *levelProcess) predict(m *AccuracyModel, b float64) (mean, variance float64) {
	n := len(l.batches)
	k := make([]float64, n)
	for i, c := range l.batches {
		k[i] = m.kernel(b, c)
	}
	variance = m.kernel(b, b) + m.Effect*m.Effect
	for i := range k {
		variance -= k[i] * dot(l.inverse[i*n:i*n+n], k)
	}
	return dot(k, l.weights), max(variance, 1e-12)
}

// search finds the hyperparameters that all levels share by coordinate search.
func (m *AccuracyModel) search(ctx context.Context) error {
	m.Amplitude, m.Length, m.Effect = .4, 3, .12
	v := m.variances()
	best := m.likelihood(&v)
	axes := []struct {
		at   *float64
		grid []float64
	}{{&m.Amplitude, passageAmplitudes}, {&m.Length, passageLengths}, {&m.Effect, passageEffects}}
	for range sweeps {
		before := best
		for _, a := range axes {
			if err := ctx.Err(); err != nil {
				return err
			}
			kept := *a.at
			for _, x := range a.grid {
				*a.at = x
				if value := m.likelihood(&v); value > best {
					best, kept = value, x
				}
			}
			*a.at = kept
		}
		if best == before {
			break
		}
	}
	return nil
}

func (m *AccuracyModel) likelihood(v *passageVariances) float64 {
	sum := 0.0
	for k := range m.Levels {
		_, x, _ := m.level(k, v)
		sum += x
	}
	return sum
}

// processes conditions all levels, and returns the inflation of variances at unmeasured batch
// sizes.
func (m *AccuracyModel) processes(v *passageVariances) ([]*levelProcess, float64) {
	var all []*levelProcess
	factor, levels := 0.0, 0.0
	for k := range m.Levels {
		l, _, ok := m.level(k, v)
		if !ok {
			l = &levelProcess{}
		}
		if all = append(all, l); len(l.weights) > 1 {
			factor += inflation(l.weights, l.inverse)
			levels++
		}
	}
	if levels == 0 {
		return all, 1
	}
	return all, max(1, factor/levels)
}
