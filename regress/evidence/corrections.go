package evidence

import (
	"math"
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

// Refitted returns the state for a new predictor that learned from the adjusted runs of the
// residuals. The residuals are dropped and the active factors become past factors.
func (d DriftState) Refitted() DriftState {
	d.Past = append(slices.Clone(d.Past), d.activeFactors()...)
	d.Past = d.Past[max(0, len(d.Past)-MaxPastFactors):]
	d.Residuals = nil
	return d
}

// activeFactors returns the factors that the residuals show; none if the state is invalid.
func (d *DriftState) activeFactors() []Factor {
	if d.check() != nil {
		return nil
	}
	return findJumps(d.Residuals).factors
}

// Adjust returns the runs as a fit should use them after past and active jumps. The times of a run
// from before a jump in its scope are obsolete. They are removed if the configuration has later
// runs; otherwise they are multiplied by the factors, so that the configuration keeps its support.
// Accuracies and start-ups are not changed. p is the predictor that the factors correct; it defines
// the node types.
func (d *DriftState) Adjust(p *Predictor, runs []Run) []Run {
	factors := slices.Concat(d.Past, d.activeFactors())
	if len(factors) == 0 {
		return runs
	}
	shifts, recent := make([]float64, len(runs)), map[Configuration]bool{}
	for i := range runs {
		c := p.banded(&runs[i])
		for k := range factors {
			if f := &factors[k]; f.Obsolete(c, runs[i].endOrStart()) {
				shifts[i] += math.Log(f.Ratio)
			}
		}
		if isTimed(runs[i]) && shifts[i] == 0 {
			recent[c] = true
		}
	}
	adjusted := slices.Clone(runs)
	for i := range adjusted {
		if shifts[i] == 0 {
			continue
		}
		factor := math.Exp(shifts[i])
		if recent[p.banded(&runs[i])] {
			factor = 0
		}
		adjusted[i].multiply(factor)
	}
	return adjusted
}

// multiply multiplies the times of a copied run; 0 makes them unknown.
func (r *Run) multiply(factor float64) {
	r.MeanSeconds *= factor
	r.Epochs = slices.Clone(r.Epochs)
	for i := range r.Epochs {
		r.Epochs[i].Seconds *= factor
	}
}
