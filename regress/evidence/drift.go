package evidence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Residual is how a finished run differed from what the served predictor said,
// without corrections.
type Residual struct {
	Configuration
	// At is when the run ended, and StartedAt when it began.
	At        time.Time `json:"at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Value is the log of the measured over the predicted epoch seconds.
	Value float64 `json:"value"`
	// Variance that the predictor gave it, and the part of it that all runs of the
	// configuration share.
	Variance float64 `json:"variance"`
	Shared   float64 `json:"shared"`
}

// Residual compares a run with the prediction; false if the run was not timed or
// nothing was predicted.
func (p *Predictor) Residual(r *Run) (Residual, bool) {
	s := p.subjects[r.subject()]
	timing, timed := r.timing()
	if s == nil || s.time == nil || !timed || !r.valid() {
		return Residual{}, false
	}
	c := p.banded(r)
	e, support, _ := s.time.estimate(&c)
	if support == NeverRun {
		return Residual{}, false
	}
	d := s.time.run(&e, support, timing.epochs)
	return Residual{Configuration: c, At: r.when(), StartedAt: r.StartedAt,
		Value: timing.mean - e.mean, Variance: d.Scale * d.Scale, Shared: e.variance}, true
}

// Drift is the state of the correction of a served predictor. It is a fold over the
// residuals of new runs, in the order in which they ended, and plain data. The zero
// value is the state before the first residual.
type Drift struct {
	// Residuals of the last runs, oldest first, at most MaxResiduals.
	Residuals []Residual `json:"residuals,omitempty"`
	// Past factors, that refits replaced, oldest first, at most MaxPast.
	Past []Factor `json:"past,omitempty"`
	// Likelihoods of each deviation of the slow field, discounted.
	Likelihoods [len(fieldDeviations)]float64 `json:"likelihoods"`
	// ErrorSquares of standardised one-step errors and ErrorWeight, discounted.
	ErrorSquares float64 `json:"error_squares"`
	ErrorWeight  float64 `json:"error_weight"`
}

// MaxResiduals is how many residuals are kept.
const MaxResiduals = 200

const (
	errorDiscount     = 0.95
	errorWeight       = 4.0 // of the prior of 1 on the mean of squared errors
	leastInflation    = 0.25
	correctedDegrees  = 8.0
	largestResidual   = 20. // in logs; larger ones are no run of this job
	residualTolerance = 1e-12
)

// check returns an error for a residual that no comparison could have made.
func (r *Residual) check() error {
	if !r.valid() || !(math.Abs(r.Value) <= largestResidual) ||
		!(r.Variance > residualTolerance) || r.Variance > 1e6 ||
		!(r.Shared >= 0) || r.Shared > r.Variance {
		return fmt.Errorf("residual %g with variance %g, shared %g", r.Value, r.Variance, r.Shared)
	}
	return nil
}

// check returns an error for a state that no fold could have made.
func (d *Drift) check() error {
	if len(d.Residuals) > MaxResiduals || !(d.ErrorSquares >= 0) || !(d.ErrorWeight >= 0) ||
		math.IsInf(d.ErrorSquares, 0) || math.IsInf(d.ErrorWeight, 0) {
		return fmt.Errorf("%w: drift of %d residuals, error squares %g of weight %g",
			ErrInvalid, len(d.Residuals), d.ErrorSquares, d.ErrorWeight)
	}
	for i := range d.Past {
		if x := d.Past[i].Ratio; !(x > 1e-9 && x < 1e9) || len(d.Past) > MaxPast {
			return fmt.Errorf("%w: factor %d of %d in the past is %g", ErrInvalid, i, len(d.Past), x)
		}
	}
	for i := range d.Residuals {
		if err := d.Residuals[i].check(); err != nil {
			return fmt.Errorf("%w: residual %d: %w", ErrInvalid, i, err)
		}
	}
	return nil
}

// Add folds in the residual of the next run and returns the new state; d is not
// changed. An error leaves the state as it was.
func (d Drift) Add(r Residual) (Drift, error) {
	if err := cmp.Or(d.check(), r.check()); err != nil {
		return d, err
	}
	d.judge(&r)
	first := max(0, len(d.Residuals)+1-MaxResiduals)
	d.Residuals = append(slices.Clone(d.Residuals[first:]), r)
	return d, nil
}

// judge scores the predictions of a residual from those before it.
func (d *Drift) judge(r *Residual) {
	j := findJumps(d.Residuals)
	shift, variance, _ := j.at(&r.Configuration, time.Time{})
	best := d.fieldDeviation()
	for g := range fieldDeviations {
		f := newField(fieldDeviations[g], d.Residuals, j.left)
		mean, add := f.at(r)
		v := max(r.Variance+variance+add, r.Variance-r.Shared, residualTolerance)
		z := r.Value - shift - mean
		if g == best {
			d.ErrorSquares = errorDiscount*d.ErrorSquares + z*z/v
			d.ErrorWeight = errorDiscount*d.ErrorWeight + 1
		}
		d.Likelihoods[g] = fieldDiscount*d.Likelihoods[g] + studentLog(z, v*d.inflation())
	}
}

// studentLog is the log density of the t distribution that bounds are made from, but
// for a constant.
func studentLog(z, scale2 float64) float64 {
	return -math.Log(scale2)/2 - (correctedDegrees+1)/2*math.Log1p(z*z/(scale2*correctedDegrees))
}

// inflation is what the scale^2 of predictions is multiplied by: the discounted mean
// of squared standardised errors.
func (d *Drift) inflation() float64 {
	return max(leastInflation, (errorWeight+d.ErrorSquares)/(errorWeight+d.ErrorWeight))
}

// fieldDeviation is the index of the likeliest deviation of the field; 0, none at all,
// before the first residual.
func (d *Drift) fieldDeviation() int {
	best := 0
	for g, l := range d.Likelihoods {
		if l > d.Likelihoods[best] && l > d.Likelihoods[0]+fieldPrior {
			best = g
		}
	}
	return best
}
