package evidence

import "math"

// The priors of the variances of time (docs/decisions/0016).
const (
	priorRunDeviation = 0.04 // of the log of a run's mean epoch time
	priorRunWeight    = 20.0 // weight of that prior against the runs of all models
	priorRunDegrees   = 4.0  // weight of all models for one model
	ownVarianceWeight = 20.0 // weight of the model's variance for one configuration
	minRunDeviation   = 0.0025
	priorEpochDegrees = 4.0
)

// spread is a pooled sum of squares.
type spread struct{ squares, freedom float64 }

func (s *spread) add(o spread) {
	s.squares += o.squares
	s.freedom += o.freedom
}

// shrunk returns the pooled variance with a prior of the given weight.
func (s spread) shrunk(prior, weight float64) float64 {
	return (weight*prior + s.squares) / (weight + s.freedom)
}

// variances are the variance components of log epoch times of one subject.
type variances struct {
	epoch   float64 // of an epoch within its run
	run     float64 // of a run within its configuration
	degrees float64 // of freedom of run
}

// components are the sums from which variances are estimated.
type components struct {
	epochs, runs spread
	inverse      float64 // sum of 1/epochs over the degrees of freedom of runs
}

func (c *components) add(o components) {
	c.epochs.add(o.epochs)
	c.runs.add(o.runs)
	c.inverse += o.inverse
}

// componentsOf sums the squares within runs and within configurations.
func componentsOf(configurations []ConfigurationTimes) components {
	var c components
	for i := range configurations {
		m := &configurations[i]
		c.epochs.add(spread{m.EpochSquares, m.EpochFreedom})
		free := float64(m.Runs - 1)
		c.runs.add(spread{m.Squares, free})
		c.inverse += free * m.InverseEpochs
	}
	return c
}

// runVariance estimates the variance of the run effect: the squares of run means minus the part
// that the noise of their epochs explains, shrunk towards a prior.
func (c *components) runVariance(prior, epoch float64) float64 {
	left := c.runs.squares - epoch*c.inverse
	v := (priorRunDegrees*prior + left) / (priorRunDegrees + c.runs.freedom)
	return max(v, prior/4)
}

// variancesOf estimates the components of one subject; all are the sums of all subjects, which give
// the prior.
func variancesOf(own, all components) variances {
	epochPrior := 0.0
	if all.epochs.freedom > 0 {
		epochPrior = all.epochs.squares / all.epochs.freedom
	}
	epoch := own.epochs.shrunk(epochPrior, priorEpochDegrees)

	left := all.runs.squares - epochPrior*all.inverse
	prior := (priorRunWeight*priorRunDeviation*priorRunDeviation + left) /
		(priorRunWeight + all.runs.freedom)
	prior = max(prior, minRunDeviation*minRunDeviation)
	return variances{epoch, own.runVariance(prior, epoch), priorRunDegrees + own.runs.freedom}
}

// ownRun returns the variance of a run of one configuration: the model's, updated by the
// configuration's own repetitions.
func (v *variances) ownRun(m *ConfigurationTimes) float64 {
	free := math.Max(float64(m.Runs-1), 0)
	return (ownVarianceWeight*v.run + m.Squares) / (ownVarianceWeight + free)
}
