package evidence

import (
	"math"
	"slices"
)

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
