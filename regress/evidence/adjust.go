package evidence

import (
	"math"
	"slices"
)

// MaxPast is how many factors are kept after the refits that replaced them, the latest.
const MaxPast = 64

// Refitted returns the state after a predictor is served that learned from the runs of
// the residuals, adjusted: the residuals are dropped, and the active factors become past
// ones. What is known about the spread of errors stays.
func (d Drift) Refitted() Drift {
	d.Past = append(slices.Clone(d.Past), d.active()...)
	d.Past = d.Past[max(0, len(d.Past)-MaxPast):]
	d.Residuals = nil
	return d
}

// active returns the factors that the residuals show; none of a state that no fold made.
func (d *Drift) active() []Factor {
	if d.check() != nil {
		return nil
	}
	return findJumps(d.Residuals).factors
}

// Adjust returns the runs as a fit after past and active jumps should see them. Runs from
// before a jump in whose scope they are say nothing of what is true now: where their
// configuration has later runs their times are left out; elsewhere they are multiplied by
// the factors, so that the configuration keeps its support. Accuracies and start-ups
// stay. p is the predictor that the factors are of; it names the node types.
func (d *Drift) Adjust(p *Predictor, runs []Run) []Run {
	factors := slices.Concat(d.Past, d.active())
	if len(factors) == 0 {
		return runs
	}
	shifts, recent := make([]float64, len(runs)), map[Configuration]bool{}
	for i := range runs {
		c := p.banded(&runs[i])
		for k := range factors {
			if f := &factors[k]; f.Obsolete(c, runs[i].when()) {
				shifts[i] += math.Log(f.Ratio)
			}
		}
		if _, timed := runs[i].timing(); timed && shifts[i] == 0 {
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

// banded is the configuration of a run as the predictor knows it.
func (p *Predictor) banded(r *Run) Configuration {
	c := r.Banded()
	c.NodeType = p.NodeType(r.Node, r.NodeType)
	return c
}

// multiply changes the times of a copy of a run; with 0 they are unknown.
func (r *Run) multiply(factor float64) {
	r.MeanSeconds *= factor
	r.Epochs = slices.Clone(r.Epochs)
	for i := range r.Epochs {
		r.Epochs[i].Seconds *= factor
	}
}
