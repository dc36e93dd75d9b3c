package evidence

import (
	"slices"
	"time"
)

// Corrections are the corrections of a state of drift. They are immutable and safe for concurrent
// use. A nil pointer corrects nothing.
type Corrections struct {
	jumps *jumps
	// exempt are configurations, and exemptSubjects subjects, that the predictor learned from
	// runs after jumps, with the end of the first of these runs. Only later jumps apply to them.
	exempt         map[Configuration]time.Time
	exemptSubjects map[subject]time.Time
}

// Corrections computes the corrections; nil before the first residual.
func (d *DriftState) Corrections() (*Corrections, error) {
	if len(d.Residuals) == 0 {
		return nil, nil
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return &Corrections{jumps: findJumps(d.Residuals)}, nil
}

// Of returns the correction of a configuration.
func (c *Corrections) Of(of Configuration) Correction {
	if c == nil {
		return Correction{}
	}
	of = of.Banded()
	learned, ok := c.exempt[of]
	if !ok {
		learned = c.exemptSubjects[of.subject()]
	}
	shift, variance, factors := c.jumps.at(&of, learned)
	return Correction{shift, variance, factors}
}

// active reports whether anything drifts.
func (c *Corrections) active() bool {
	return c != nil && len(c.jumps.factors)+len(c.jumps.suspects) > 0
}

// Factors returns the active factors in the order in which they were found.
func (c *Corrections) Factors() []Factor {
	if c == nil {
		return nil
	}
	return slices.Clone(c.jumps.factors)
}
