package decide

import (
	"math"

	"courier/schemas"
)

// trial is a variant with its figures.
type trial struct {
	schemas.Choice
	keepsSLO   bool // and reaches the target accuracy, with enough probability
	isHarmless bool // it breaks no promise of another job
}

// try forecasts a variant. The level is the probability of its upper bound. It returns nil if its
// time is unknown.
func (p *problem) try(kind string, v variant, level float64) (*trial, forecast) {
	p = p.of(v.workers)
	f := p.forecast(v)
	if math.IsInf(f.job.end, 1) {
		return nil, f
	}
	c := p.variantOn(&f, v, level)
	t := &trial{
		Choice:   c.choice(kind),
		keepsSLO: p.Request.SLO == 0 || c.Probability != nil && *c.Probability >= p.Request.Confidence,
	}
	t.StartSeconds = math.Round(v.wait*1e6) / 1e6
	return t, f
}

// variantOn returns the figures of a variant by a forecast of at least as many epochs. The level is the
// probability of its upper bound.
func (p *problem) variantOn(f *forecast, v variant, level float64) candidate {
	c := candidate{Alternative: schemas.Alternative{
		BatchSize: v.batch, CPUs: v.cpus, Workers: v.workers, Epochs: v.epochs,
	}}
	passage := p.passage(v.batch)
	p.setTime(&c, f, level)
	p.setAccuracy(&c, &passage)
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
