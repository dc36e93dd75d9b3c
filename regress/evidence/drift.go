package evidence

import (
	"math"
	"slices"
	"time"
)

// MaxResiduals is the maximum number of residuals that are kept.
const MaxResiduals = 200

// Residual is the difference between a finished run and its prediction without corrections.
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

// Residual compares a run with its prediction; false if the run was not timed or has no prediction.
func (p *Predictor) Residual(r *Run) (Residual, bool) {
	s := p.of(&r.Configuration)
	curve, _, timed := r.curve()
	if s.time == nil || !timed || !r.valid() {
		return Residual{}, false
	}
	c := p.banded(r)
	times := s.time.times(&c)
	if times.support == NeverRun {
		return Residual{}, false
	}
	n := curve.epochs()
	total := times.total(n)
	value := math.Log(curve.sums[n-1]) - total.location
	return Residual{Configuration: c, At: r.endOrStart(), StartedAt: r.StartedAt,
		Value: max(-maxResidual, min(maxResidual, value)), Variance: total.shared + total.run,
		Shared: total.shared}, true
}

// DriftState is the state of the correction of a served predictor. It follows from the residuals of
// new runs in the order of their ends. It is plain data. The zero value has no residuals.
type DriftState struct {
	// Residuals of the last runs, oldest first, at most MaxResiduals.
	Residuals []Residual `json:"residuals,omitempty"`
	// Past factors, which refits replaced, oldest first, at most MaxPastFactors.
	Past []Factor `json:"past,omitempty"`
}

const (
	correctedDegrees  = 8.0
	maxResidual       = 20. // in logs; a larger one is not plausible
	residualTolerance = 1e-12
)

// Add returns the state after the residual of the next run; d is not changed.
func (d DriftState) Add(r Residual) DriftState {
	first := max(0, len(d.Residuals)+1-MaxResiduals)
	d.Residuals = append(slices.Clone(d.Residuals[first:]), r)
	return d
}

// MaxPastFactors is the maximum number of factors that are kept after refits replaced them; older
// ones are dropped.
const MaxPastFactors = 64

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
func (d *DriftState) Corrections() *Corrections {
	if len(d.Residuals) == 0 {
		return nil
	}
	return &Corrections{jumps: findJumps(d.Residuals)}
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

// activeFactors returns the factors that the residuals show.
func (d *DriftState) activeFactors() []Factor { return findJumps(d.Residuals).factors }

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
	r.Epochs = slices.Clone(r.Epochs)
	for i := range r.Epochs {
		r.Epochs[i].Seconds *= factor
	}
}
