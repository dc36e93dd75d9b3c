package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
)

// BoostingOptions are the settings of gradient boosting.
type BoostingOptions struct {
	// Trees is the number of trees, from 1 to 100000, or with Patience the most.
	Trees int `json:"trees"`
	// Leaves is the most leaves of a tree, from 2 to 4096; the leaf that gains
	// most is split next. 0 means 31, or no limit where MaxDepth is set.
	Leaves int `json:"leaves"`
	// MaxDepth is the most splits between root and leaf, from 1 to 64; 0 means
	// no limit.
	MaxDepth int `json:"max_depth"`
	// MinLeaf is the fewest examples in a leaf; 0 means 5.
	MinLeaf int `json:"min_leaf"`
	// LearningRate, in (0, 1], is the share of what a tree found that is
	// believed; 0 means 0.1.
	LearningRate float64 `json:"learning_rate"`
	// Criterion is Absolute where it is empty.
	Criterion Criterion `json:"criterion"`
	// Level, in (0, 1), is the quantile to predict under Quantile, where it has
	// no default, and under Huber the share of residuals that count by their
	// squares, where 0 means 0.9.
	Level float64 `json:"level,omitempty"`
	// RowShare and FeatureShare, in (0, 1], are drawn anew for each tree,
	// without replacement; 0 means 1.
	RowShare     float64 `json:"row_share"`
	FeatureShare float64 `json:"feature_share"`
	// Patience, where it is not 0, ends the fit early: on settings held out, the
	// loss is followed tree by tree until it has not fallen for so many trees,
	// and then as many trees as were best there are grown on all examples.
	Patience int `json:"patience,omitempty"`
	// Transform is None where it is empty.
	Transform Transform `json:"transform"`
	// Seed decides all that is random.
	Seed uint64 `json:"seed"`
	// Folds of the calibration, as in ForestOptions.
	Folds int `json:"folds"`
	// MinExamples and MinSettings are the least to learn from, below which
	// fitting returns ErrTooFewExamples; 0 means 20 and 5.
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	// Threads is the most goroutines to use; 0 means GOMAXPROCS - 1, at least 1.
	Threads int `json:"-"`
	// Progress, where it is not nil, is told after each tree how many of all
	// planned trees (those of the calibration and of Patience included) are
	// done, and in the end that all are. Calls come one at a time and in order.
	Progress func(done, planned int) `json:"-"`
}

const (
	defaultLeaves = 31
	mostLeaves    = 4096
)

// resolve checks the options and fills in defaults.
func (o BoostingOptions) resolve() (BoostingOptions, error) {
	if o.Leaves == 0 && o.MaxDepth == 0 {
		o.Leaves = defaultLeaves
	}
	o.MinLeaf = cmp.Or(o.MinLeaf, 5)
	o.LearningRate = cmp.Or(o.LearningRate, 0.1)
	o.Criterion = cmp.Or(o.Criterion, Absolute)
	if o.Criterion == Huber {
		o.Level = cmp.Or(o.Level, 0.9)
	}
	o.RowShare, o.FeatureShare = cmp.Or(o.RowShare, 1), cmp.Or(o.FeatureShare, 1)
	o.Transform = cmp.Or(o.Transform, None)
	o.Folds = cmp.Or(o.Folds, mostFolds)
	o.MinExamples = cmp.Or(o.MinExamples, minExamples)
	o.MinSettings = cmp.Or(o.MinSettings, minSettings)
	o.Threads = cmp.Or(o.Threads, max(1, runtime.GOMAXPROCS(0)-1))
	if o.Leaves != 0 || o.MaxDepth == 0 {
		if o.Leaves < 2 || o.Leaves > mostLeaves {
			return o, fmt.Errorf("%w: leaves is %d, want 2 to %d", ErrBadSettings, o.Leaves,
				mostLeaves)
		}
	}
	for _, c := range []struct {
		name           string
		value, low, up int
	}{
		{"trees", o.Trees, 1, maxTrees},
		{"max_depth", o.MaxDepth, 0, maxDepth},
		{"min_leaf", o.MinLeaf, 1, math.MaxInt32},
		{"patience", o.Patience, 0, maxTrees},
		{"threads", o.Threads, 1, 1024},
		{"min_examples", o.MinExamples, 1, math.MaxInt32},
		{"min_settings", o.MinSettings, 1, math.MaxInt32},
	} {
		if c.value < c.low || c.value > c.up {
			return o, fmt.Errorf("%w: %s is %d, want %d to %d", ErrBadSettings, c.name, c.value,
				c.low, c.up)
		}
	}
	return o, o.checkShares()
}

// checkShares holds for what is no whole number.
func (o *BoostingOptions) checkShares() error {
	for _, c := range []struct {
		name  string
		value float64
	}{{
		"learning_rate", o.LearningRate,
	}, {"row_share", o.RowShare}, {"feature_share", o.FeatureShare}} {
		if !(c.value > 0 && c.value <= 1) {
			return fmt.Errorf("%w: %s is %g, want above 0 and at most 1", ErrBadSettings, c.name,
				c.value)
		}
	}
	if o.Folds == 1 {
		return fmt.Errorf("%w: folds is 1, want 2 or more, or less than 0 for none", ErrBadSettings)
	}
	switch o.Criterion {
	case Squared, Absolute:
		if o.Level != 0 {
			return fmt.Errorf("%w: level is %g, but %s has none", ErrBadSettings, o.Level,
				o.Criterion)
		}
	case Huber, Quantile:
		if !(o.Level > 0 && o.Level < 1) {
			return fmt.Errorf("%w: level is %g, want above 0 and below 1", ErrBadSettings, o.Level)
		}
	default:
		return fmt.Errorf("%w: criterion is %q", ErrBadSettings, o.Criterion)
	}
	if o.Transform != None && o.Transform != Log {
		return fmt.Errorf("%w: transform is %q", ErrBadSettings, o.Transform)
	}
	return nil
}

// FitBoosting adds up trees, each grown on what those before it left over
// (Friedman 2001), and calibrates the sum as FitForest does. Splits follow the
// gradient of the loss, leaves hold the exact minimum of it: mean, median or
// quantile of the residuals.
//
// Equal examples in any order, options and seed give the same bytes, whatever
// Threads is. It stops with ctx's error when ctx ends.
func FitBoosting(ctx context.Context, d *Dataset, o BoostingOptions) (*Regressor, error) {
	r, err := fitBoosting(ctx, d, o)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	return r, nil
}

func fitBoosting(ctx context.Context, d *Dataset, o BoostingOptions) (*Regressor, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if d, err = d.prepare(o.Transform, o.MinExamples, o.MinSettings, o.Folds); err != nil {
		return nil, err
	}
	folds := d.folds(o.Folds, o.Seed)
	few := d.thinned()
	cases := few.levelCases()
	if folds == nil {
		cases = nil
	}
	fits := 1 + foldCount(folds) + len(cases)
	progress := newProgress(o.Progress, fits*o.planned())
	trees, err := boost(ctx, d, o, progress)
	if err != nil {
		return nil, err
	}
	progress.reach(o.planned())
	r := &Regressor{ensemble: ensemble{trees: trees}, Manifest: describe(d, o.Transform)}
	r.Manifest.Family, r.Manifest.Boosting = FamilyBoosting, &o
	if folds == nil {
		return r, nil
	}
	done := 1
	again := func(train *Dataset) (func(row []float64) float64, error) {
		trees, err := boost(ctx, train, o, progress)
		done++
		progress.reach(done * o.planned())
		e := ensemble{trees: trees}
		return e.predict, err
	}
	predicted, err := OutOfFold(d, folds, again)
	if err != nil {
		return nil, err
	}
	r.Manifest.calibrate(d, predicted, folds, o.Seed)
	return r, r.Manifest.leaveLevelsOut(ctx, few, cases, again)
}

// planned is the most trees that one fit grows.
func (o *BoostingOptions) planned() int {
	if o.Patience > 0 {
		return 2 * o.Trees
	}
	return o.Trees
}

// boost grows the trees of one sum.
func boost(ctx context.Context, d *Dataset, o BoostingOptions, done *progress) ([]tree, error) {
	return newBooster(d, o).sum(ctx, d, done)
}

// sum grows all trees; with Patience it needs the dataset.
func (b *booster) sum(ctx context.Context, d *Dataset, done *progress) ([]tree, error) {
	if b.constant() {
		return []tree{{
			leaves: []leaf{{
				value:  b.target[0],
				weight: b.weightOf(b.members),
				count:  len(b.members),
			}},
		}}, ctx.Err()
	}
	count := b.options.Trees
	if b.options.Patience > 0 {
		var err error
		if count, err = b.bestCount(ctx, d, done); err != nil {
			return nil, err
		}
	}
	trees := make([]tree, 0, count)
	for len(trees) < count && ctx.Err() == nil {
		trees = append(trees, b.next())
		done.add(1)
	}
	return trees, ctx.Err()
}
