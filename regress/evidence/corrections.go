package evidence

import (
	"slices"
	"time"
)

// Corrections are the corrections of a state of drift. They are immutable and safe for concurrent
// use. A nil pointer corrects nothing.
type Corrections struct {
	jumps     *jumps
	inflation float64
	slow      bool       // the field is active
	unseen    [2]float64 // mean and variance of the field for other models
	subjects  map[subject][2]float64
	exact     map[Configuration]Correction
	// exempt are configurations, and exemptSubjects subjects, that the predictor learned from
	// runs after jumps, with the end of the first of these runs. Only later jumps apply to them.
	exempt         map[Configuration]time.Time
	exemptSubjects map[subject]time.Time
}

// Corrections computes the corrections; nil before the first residual.
func (d *DriftState) Corrections() (*Corrections, error) {
	if d.ErrorWeight == 0 {
		return nil, nil
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	c := &Corrections{jumps: findJumps(d.Residuals), inflation: d.inflation(),
		subjects: map[subject][2]float64{}, exact: map[Configuration]Correction{}}
	c.slow = d.fieldDeviation() > 0
	f := newField(fieldDeviations[d.fieldDeviation()], d.Residuals, c.jumps.remaining)
	mean, variance := f.at(&Residual{})
	c.unseen = [2]float64{mean, variance}
	for i := range d.Residuals {
		r := &d.Residuals[i]
		if _, ok := c.exact[r.Configuration]; ok {
			continue
		}
		own := Residual{Configuration: Configuration{Model: r.Model, Dataset: r.Dataset}}
		mean, variance := f.at(&own)
		c.subjects[r.subject()] = [2]float64{mean, variance}
		mean, variance = f.at(r)
		c.exact[r.Configuration] = c.combine(&r.Configuration, mean, variance)
	}
	return c, nil
}

func (c *Corrections) combine(of *Configuration, mean, variance float64) Correction {
	learned, ok := c.exempt[*of]
	if !ok {
		learned = c.exemptSubjects[of.subject()]
	}
	shift, more, factors := c.jumps.at(of, learned)
	return Correction{shift + mean, more + variance, c.inflation, factors}
}

// Of returns the correction of a configuration.
func (c *Corrections) Of(of Configuration) Correction {
	if c == nil {
		return Correction{Inflation: 1}
	}
	of = of.Banded()
	if x, ok := c.exact[of]; ok {
		return x
	}
	field, ok := c.subjects[of.subject()]
	if !ok {
		field = c.unseen
	}
	return c.combine(&of, field[0], field[1])
}

// active reports whether anything drifts.
func (c *Corrections) active() bool {
	return c != nil && (c.slow || len(c.jumps.factors)+len(c.jumps.suspects) > 0)
}

// Factors returns the active factors in the order in which they were found.
func (c *Corrections) Factors() []Factor {
	if c == nil {
		return nil
	}
	return slices.Clone(c.jumps.factors)
}
