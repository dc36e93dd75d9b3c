package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
)

// BoostingOptions are the options of gradient boosting.
type BoostingOptions struct {
	// Trees is the number of trees, from 1 to 100000; with Patience the maximum.
	Trees int `json:"trees"`
	// Leaves is the maximum number of leaves of a tree, from 2 to 4096; the leaf with the largest
	// gain is split next. 0 means 31, or no limit if MaxDepth is set.
	Leaves int `json:"leaves"`
	// MaxDepth is the maximum number of splits between root and leaf, from 1 to 64; 0 means no
	// limit.
	MaxDepth int `json:"max_depth"`
	// MinLeaf is the minimum number of examples in a leaf; 0 means 5.
	MinLeaf int `json:"min_leaf"`
	// LearningRate, in (0, 1], scales the values of each tree; 0 means 0.1.
	LearningRate float64 `json:"learning_rate"`
	// Criterion is Absolute if empty.
	Criterion Criterion `json:"criterion"`
	// Level, in (0, 1), is the predicted quantile under Quantile, without a default. Under
	// Huber it is the share of residuals with squared loss; 0 means 0.9.
	Level float64 `json:"level,omitempty"`
	// RowShare and FeatureShare, in (0, 1], are the shares drawn for each tree without
	// replacement; 0 means 1.
	RowShare     float64 `json:"row_share"`
	FeatureShare float64 `json:"feature_share"`
	// Patience, if not 0, ends the fit early: the loss on held-out configurations is measured after
	// each tree until it has not fallen for that many trees. The best number of trees is then
	// grown on all examples.
	Patience int `json:"patience,omitempty"`
	// Transform is None if empty.
	Transform Transform `json:"transform"`
	// Seed of all random numbers.
	Seed uint64 `json:"seed"`
	// Folds of the calibration, as in ForestOptions.
	Folds int `json:"folds"`
	// MinExamples and MinSettings are the minimum for a fit, which otherwise returns
	// ErrTooFewExamples; 0 means 20 and 5.
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	// Threads is the maximum number of goroutines; 0 means GOMAXPROCS - 1, at least 1.
	Threads int `json:"-"`
	// Progress, if not nil, is called after each tree with the number of completed and planned
	// trees, including trees for calibration and Patience, and at the end with all. Calls
	// come one at a time and in order.
	Progress func(done, planned int) `json:"-"`
}

const (
	defaultLeaves = 31
	maxLeaves     = 4096
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
	o.Folds = cmp.Or(o.Folds, defaultFolds)
	o.MinExamples = cmp.Or(o.MinExamples, minExamples)
	o.MinSettings = cmp.Or(o.MinSettings, minSettings)
	o.Threads = cmp.Or(o.Threads, max(1, runtime.GOMAXPROCS(0)-1))
	if o.Leaves != 0 || o.MaxDepth == 0 {
		if o.Leaves < 2 || o.Leaves > maxLeaves {
			return o, fmt.Errorf("%w: leaves is %d, want 2 to %d", ErrBadOptions, o.Leaves,
				maxLeaves)
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
			return o, fmt.Errorf("%w: %s is %d, want %d to %d", ErrBadOptions, c.name, c.value,
				c.low, c.up)
		}
	}
	return o, o.checkShares()
}

// checkShares checks the options that are not integers.
func (o *BoostingOptions) checkShares() error {
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"learning_rate", o.LearningRate},
		{"row_share", o.RowShare},
		{"feature_share", o.FeatureShare},
	} {
		if !(c.value > 0 && c.value <= 1) {
			return fmt.Errorf("%w: %s is %g, want above 0 and at most 1", ErrBadOptions, c.name,
				c.value)
		}
	}
	if o.Folds == 1 {
		return fmt.Errorf("%w: folds is 1, want 2 or more, or less than 0 for none", ErrBadOptions)
	}
	switch o.Criterion {
	case Squared, Absolute:
		if o.Level != 0 {
			return fmt.Errorf("%w: level is %g, but %s has none", ErrBadOptions, o.Level,
				o.Criterion)
		}
	case Huber, Quantile:
		if !(o.Level > 0 && o.Level < 1) {
			return fmt.Errorf("%w: level is %g, want above 0 and below 1", ErrBadOptions, o.Level)
		}
	default:
		return fmt.Errorf("%w: criterion is %q", ErrBadOptions, o.Criterion)
	}
	if o.Transform != None && o.Transform != Log {
		return fmt.Errorf("%w: transform is %q", ErrBadOptions, o.Transform)
	}
	return nil
}

// FitBoosting adds up trees, each grown on the residuals of the previous ones (Friedman 2001), and
// calibrates the sum as FitForest does. Splits follow the gradient of the loss; leaves hold its
// exact minimum: mean, median or quantile of the residuals.
//
// Equal examples in any order, options and seed give the same bytes for any number of threads. It
// returns ctx's error when ctx ends.
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
	progress.advanceTo(o.planned())
	r := &Regressor{ensemble: ensemble{trees: trees}, Manifest: describe(d, o.Transform)}
	r.Manifest.Family, r.Manifest.Boosting = FamilyBoosting, &o
	if folds == nil {
		return r, nil
	}
	done := 1
	again := func(train *Dataset) (func(row []float64) float64, error) {
		trees, err := boost(ctx, train, o, progress)
		done++
		progress.advanceTo(done * o.planned())
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

// planned returns the maximum number of trees of one fit.
func (o *BoostingOptions) planned() int {
	if o.Patience > 0 {
		return 2 * o.Trees
	}
	return o.Trees
}

// boost grows the trees of one sum.
func boost(
	ctx context.Context, d *Dataset, o BoostingOptions, done *progressCounter,
) ([]tree, error) {
	return newBooster(d, o).sum(ctx, d, done)
}

// sum grows all trees; with Patience it needs the dataset.
func (b *booster) sum(ctx context.Context, d *Dataset, done *progressCounter) ([]tree, error) {
	if b.constant() {
		return []tree{{
			leaves: []treeLeaf{{
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
