package evidence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

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
	// Likelihoods of each deviation of the slow field, discounted.
	Likelihoods [len(fieldDeviations)]float64 `json:"likelihoods"`
	// ErrorSquares is the discounted sum of squares of standardized one-step errors, ErrorWeight
	// their discounted number.
	ErrorSquares float64 `json:"error_squares"`
	ErrorWeight  float64 `json:"error_weight"`
}

const (
	errorDiscount     = 0.95
	errorWeight       = 4.0 // of the prior of 1 on the mean of squared errors
	minInflation      = 0.25
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
	if len(d.Residuals) > MaxResiduals || !(d.ErrorSquares >= 0) || !(d.ErrorWeight >= 0) ||
		math.IsInf(d.ErrorSquares, 0) || math.IsInf(d.ErrorWeight, 0) {
		return fmt.Errorf("%w: drift with %d residuals, error_squares %g and error_weight %g",
			ErrInvalid, len(d.Residuals), d.ErrorSquares, d.ErrorWeight)
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
	d.score(&r)
	first := max(0, len(d.Residuals)+1-MaxResiduals)
	d.Residuals = append(slices.Clone(d.Residuals[first:]), r)
	return d, nil
}

// score scores the predictions of a residual from the earlier ones.
func (d *DriftState) score(r *Residual) {
	j := findJumps(d.Residuals)
	shift, variance, _ := j.at(&r.Configuration, time.Time{})
	best := d.fieldDeviation()
	for g := range fieldDeviations {
		f := newField(fieldDeviations[g], d.Residuals, j.remaining)
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

// studentLog is the log density, up to a constant, of the t distribution behind the bounds.
func studentLog(z, scale2 float64) float64 {
	return -math.Log(scale2)/2 - (correctedDegrees+1)/2*math.Log1p(z*z/(scale2*correctedDegrees))
}

// inflation returns the factor of the squared scale of predictions: the discounted mean of squared
// standardized errors.
func (d *DriftState) inflation() float64 {
	return max(minInflation, (errorWeight+d.ErrorSquares)/(errorWeight+d.ErrorWeight))
}

// fieldDeviation returns the index of the most likely deviation of the field; 0, no field, before
// the first residual.
func (d *DriftState) fieldDeviation() int {
	best := 0
	for g, l := range d.Likelihoods {
		if l > d.Likelihoods[best] && l > d.Likelihoods[0]+fieldPrior {
			best = g
		}
	}
	return best
}

// MaxPastFactors is the maximum number of factors that are kept after refits replaced them; older
// ones are dropped.
const MaxPastFactors = 64
