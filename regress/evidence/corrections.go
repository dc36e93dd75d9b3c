package evidence

import (
	"slices"
	"time"
)

// Correction is what predictions of one configuration are corrected by.
type Correction struct {
	// Shift of the log of epoch seconds.
	Shift float64
	// Variance that is added to that of the log, or taken off where the runs showed
	// the configuration's own error.
	Variance float64
	// Inflation is what the variance is multiplied by then.
	Inflation float64
	// Factors that hold for the configuration, of those that are active.
	Factors int
}

// Corrections are a state of drift ready to be served. They do not change and are safe
// for any number of goroutines; nil means no correction.
type Corrections struct {
	jumps     *jumps
	inflation float64
	slow      bool       // the field is active
	unseen    [2]float64 // mean and variance of the field where no model ran
	subjects  map[subject][2]float64
	exact     map[Configuration]Correction
	// exempt are configurations, and subjects, that the predictor learned from runs after jumps, and
	// when the first of these ended: only later jumps change what is predicted of them.
	exempt         map[Configuration]time.Time
	exemptSubjects map[subject]time.Time
}

// Corrections compiles the state; nil before the first residual.
func (d *Drift) Corrections() (*Corrections, error) {
	if d.ErrorWeight == 0 {
		return nil, nil
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	c := &Corrections{jumps: findJumps(d.Residuals), inflation: d.inflation(),
		subjects: map[subject][2]float64{}, exact: map[Configuration]Correction{}}
	c.slow = d.fieldDeviation() > 0
	f := newField(fieldDeviations[d.fieldDeviation()], d.Residuals, c.jumps.left)
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

// Factors returns the active factors, in the order in which they were found.
func (c *Corrections) Factors() []Factor {
	if c == nil {
		return nil
	}
	return slices.Clone(c.jumps.factors)
}
