package decide

import "courier/schemas"

// trial is a variant with its figures.
type trial struct {
	schemas.Choice
	keepsSLO   bool // and reaches the target accuracy, with enough probability
	isHarmless bool // it breaks no promise of another job
}

// variantOn returns the figures of a variant by a forecast of at least as many epochs. The level is the
// probability of its upper bound.
func (p *problem) variantOn(f *forecast, v variant, level float64) candidate {
	c := p.untimed(schemas.Alternative{BatchSize: v.batch, CPUs: v.cpus, Workers: v.workers, Epochs: v.epochs})
	c.forecast = f
	p.setTime(&c, level)
	p.setAccuracy(&c)
	return c
}

// choice returns the figures of a candidate that starts now.
func (c *candidate) choice(kind string) schemas.Choice {
	return schemas.Choice{
		Kind:              kind,
		BatchSize:         c.BatchSize,
		CPUs:              c.CPUs,
		Workers:           c.Workers,
		Epochs:            c.Epochs,
		PredictedSeconds:  c.PredictedSeconds,
		UpperBoundSeconds: c.UpperBoundSeconds,
		PredictedAccuracy: c.PredictedAccuracy,
		Probability:       c.Probability,
		CPUSeconds:        c.CPUSeconds,
	}
}

// choiceAccuracy returns the predicted accuracy of a choice, 0 if unknown.
func choiceAccuracy(c *schemas.Choice) float64 { return orZero(c.PredictedAccuracy) }
