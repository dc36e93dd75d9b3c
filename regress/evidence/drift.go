package evidence

import (
	"cmp"
	"fmt"
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
	s := p.subjects[r.subject()]
	curve, _, timed := r.curve()
	if s == nil || s.time == nil || !timed || !r.valid() {
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

// check returns an error for a residual that Predictor.Residual cannot produce.
func (r *Residual) check() error {
	if !r.valid() || !(math.Abs(r.Value) <= maxResidual) ||
		!(r.Variance > residualTolerance) || r.Variance > 1e6 ||
		!(r.Shared >= 0) || r.Shared > r.Variance {
		return fmt.Errorf("invalid residual %g with variance %g and shared variance %g",
			r.Value, r.Variance, r.Shared)
	}
	return nil
}

// check returns an error for a state that Add cannot produce.
func (d *DriftState) check() error {
	if len(d.Residuals) > MaxResiduals {
		return fmt.Errorf("%w: drift with %d residuals, want at most %d",
			ErrInvalid, len(d.Residuals), MaxResiduals)
	}
	for i := range d.Past {
		if x := d.Past[i].Ratio; !(x > 1e-9 && x < 1e9) || len(d.Past) > MaxPastFactors {
			return fmt.Errorf("%w: past factor %d of %d is %g, want 1e-9 to 1e9",
				ErrInvalid, i, len(d.Past), x)
		}
	}
	for i := range d.Residuals {
		if err := d.Residuals[i].check(); err != nil {
			return fmt.Errorf("%w: residual %d: %w", ErrInvalid, i, err)
		}
	}
	return nil
}

// Add returns the state after the residual of the next run; d is not changed. After an error the
// state is d.
func (d DriftState) Add(r Residual) (DriftState, error) {
	if err := cmp.Or(d.check(), r.check()); err != nil {
		return d, err
	}
	first := max(0, len(d.Residuals)+1-MaxResiduals)
	d.Residuals = append(slices.Clone(d.Residuals[first:]), r)
	return d, nil
}

// MaxPastFactors is the maximum number of factors that are kept after refits replaced them; older
// ones are dropped.
const MaxPastFactors = 64
