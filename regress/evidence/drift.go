package evidence

import (
	"math"
	"slices"
	"time"
)

// Residual is the difference between a finished run and its prediction by a base.
type Residual struct {
	Configuration
	// At is when the run ended, and StartedAt when it began.
	At        time.Time `json:"at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Value is the log of the measured over the predicted epoch seconds.
	Value float64 `json:"value"`
	// Variance that the predictor expected, and the part Shared by all runs of the
	// configuration.
	Variance float64 `json:"variance"`
	Shared   float64 `json:"shared"`
}

// MaxResiduals is the maximum number of residuals that are kept.
const MaxResiduals = 200

// Residual compares a run with its prediction; false if the run was not timed, or if there is too little
// evidence for a prediction.
func (p *Predictor) Residual(r *Run) (Residual, bool) {
	s := p.of(&r.Configuration)
	curve, _, timed := r.curve()
	if s.time == nil || !timed || !r.valid() {
		return Residual{}, false
	}
	c := p.banded(r)
	times := s.time.times(&c)
	if !times.support.Promisable() {
		return Residual{}, false
	}
	n := curve.epochs()
	total := times.total(n)
	value := math.Log(curve.sums[n-1]) - total.location
	return Residual{Configuration: c, At: r.endOrStart(), StartedAt: r.StartedAt,
		Value: max(-maxResidual, min(maxResidual, value)), Variance: total.shared + total.run,
		Shared: total.shared}, true
}

// DriftState is the drift since a base was fitted. It follows from the residuals of new runs in the order
// of their ends. It is plain data. The zero value has no residuals.
type DriftState struct {
	// Residuals of the last runs, oldest first, at most MaxResiduals.
	Residuals []Residual `json:"residuals,omitempty"`
	// Past factors, which later bases have learned, oldest first, at most MaxPastFactors.
	Past []Factor `json:"past,omitempty"`
}

const maxResidual = 20. // in logs; a larger one is not plausible

// Add returns the state after the residual of the next run; d is not changed.
func (d DriftState) Add(r Residual) DriftState {
	first := max(0, len(d.Residuals)+1-MaxResiduals)
	d.Residuals = append(slices.Clone(d.Residuals[first:]), r)
	return d
}

// MaxPastFactors is the maximum number of past factors that are kept; older ones are dropped.
const MaxPastFactors = 64

// Refitted returns the state for a new base that learned from the adjusted runs of the residuals. The
// residuals are dropped and the active factors become past factors.
func (d DriftState) Refitted() DriftState {
	d.Past = append(slices.Clone(d.Past), d.Factors()...)
	d.Past = d.Past[max(0, len(d.Past)-MaxPastFactors):]
	d.Residuals = nil
	return d
}

// Adjust returns the runs as a fit should use them after past and active jumps. The times of a run
// from before a jump in its scope are obsolete. They are removed if the configuration has later
// runs; otherwise they are multiplied by the factors, so that the configuration keeps its support.
// Accuracies and start-ups are not changed. p is the predictor of the base; it defines the node types.
func (d *DriftState) Adjust(p *Predictor, runs []Run) []Run {
	factors := slices.Concat(d.Past, d.Factors())
	if len(factors) == 0 {
		return runs
	}
	shifts, recent := make([]float64, len(runs)), map[Configuration]bool{}
	for i := range runs {
		c := p.banded(&runs[i])
		for k := range factors {
			if f := &factors[k]; f.Covers(&c) && runs[i].endOrStart().Before(f.Since) {
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
	r.Epochs = slices.Clone(r.Epochs)
	for i := range r.Epochs {
		r.Epochs[i].Seconds *= factor
	}
}
