package regress

import (
	"context"
	"fmt"
	"slices"
)

// Quantiles predicts several quantiles of one target. They never cross: a
// prediction sorts what the regressors say (rearrangement: Chernozhukov,
// Fernández-Val, Galichon 2010), which brings them closer to the truth, never
// farther from it.
type Quantiles struct {
	// Levels in (0, 1), ascending, and the regressor of each.
	Levels     []float64
	Regressors []*Regressor
	predictors []*Predictor
}

// FitQuantiles fits a boosting for each level. Options are as in FitBoosting,
// their Criterion and Level are not looked at. Errors are those of FitBoosting;
// levels that are not ascending in (0, 1) wrap ErrBadSettings.
func FitQuantiles(ctx context.Context, d *Dataset, levels []float64, o BoostingOptions) (*Quantiles, error) {
	if err := checkLevels(levels); err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	tell, planned := o.Progress, 0
	var regressors []*Regressor
	for i, level := range levels {
		o.Criterion, o.Level = Quantile, level
		if tell != nil {
			o.Progress = func(done, each int) {
				planned = each
				tell(i*planned+done, len(levels)*planned)
			}
		}
		r, err := FitBoosting(ctx, d, o)
		if err != nil {
			return nil, fmt.Errorf("level %g: %w", level, err)
		}
		regressors = append(regressors, r)
	}
	return NewQuantiles(levels, regressors)
}

// NewQuantiles puts regressors together, fitted or read, one for each level. All
// must have the same features.
func NewQuantiles(levels []float64, regressors []*Regressor) (*Quantiles, error) {
	if err := checkLevels(levels); err != nil {
		return nil, err
	}
	if len(levels) != len(regressors) {
		return nil, fmt.Errorf("%w: %d levels for %d regressors", ErrBadSettings, len(levels), len(regressors))
	}
	q := &Quantiles{Levels: slices.Clone(levels), Regressors: regressors}
	names := regressors[0].Manifest.columns()
	for i, r := range regressors {
		if !slices.Equal(names, r.Manifest.columns()) {
			return nil, fmt.Errorf("%w: level %g has other features than level %g", ErrBadSettings, levels[i], levels[0])
		}
		p, err := Compile(r)
		if err != nil {
			return nil, err
		}
		q.predictors = append(q.predictors, p)
	}
	return q, nil
}

func checkLevels(levels []float64) error {
	last := 0.0
	for _, level := range levels {
		if !(level > last && level < 1) {
			return fmt.Errorf("%w: levels are %g, want ascending numbers in (0, 1)", ErrBadSettings, levels)
		}
		last = level
	}
	if len(levels) == 0 {
		return fmt.Errorf("%w: no levels", ErrBadSettings)
	}
	return nil
}

// Predict appends the quantiles of a row, in the unit of the target and in order
// of the levels, to into and returns it. It is safe for any number of goroutines,
// and allocates nothing where into has room. An error wraps ErrBadRow.
func (q *Quantiles) Predict(row, into []float64) ([]float64, error) {
	from := len(into)
	for _, p := range q.predictors {
		point, err := p.Predict(row)
		if err != nil {
			return into[:from], err
		}
		into = append(into, point.Value)
	}
	slices.Sort(into[from:])
	return into, nil
}
