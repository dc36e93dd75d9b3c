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
	f := p.forecast(v)
	if math.IsInf(f.job.end, 1) {
		return nil, f
	}
	o, seconds := p.outlook(&f, v.epochs), f.job.end
	if o.Known() {
		seconds = o.Median()
	}
	t := &trial{Choice: schemas.Choice{
		Kind:             kind,
		BatchSize:        v.batch,
		CPUs:             v.cpus,
		Epochs:           v.epochs,
		StartSeconds:     math.Round(v.wait*1e6) / 1e6,
		PredictedSeconds: figure(seconds),
		CPUSeconds:       figure((seconds - v.wait) * float64(v.cpus)),
	}}
	reaches := 1.0
	if p.hasAccuracy {
		last, _ := p.lastEpochs(v.batch, v.epochs)
		a := p.accuracyAt(v.batch, last)
		if a.Known {
			t.PredictedAccuracy = figure(a.Mean)
		}
		if p.Request.TargetAccuracy > 0 {
			passage := p.passage(v.batch)
			reaches = p.promisedReach(&a, &passage, v.epochs)
		}
	}
	if bound, ok := o.upperBound(level); ok {
		t.UpperBoundSeconds = figure(bound)
	}
	if t.keepsSLO = p.Request.SLO == 0; t.keepsSLO {
		return t, f
	}
	if inTime, ok := o.inTime(p.Left()); ok {
		t.Probability = figure(inTime * reaches)
		t.keepsSLO = *t.Probability >= p.Request.Confidence
	}
	return t, f
}

// choiceAccuracy returns the predicted accuracy of a choice, 0 if unknown.
func choiceAccuracy(c *schemas.Choice) float64 { return orZero(c.PredictedAccuracy) }
