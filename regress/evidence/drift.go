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
