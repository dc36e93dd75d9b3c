package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Criterion is the loss that the splits and the leaves of a tree minimize.
type Criterion string

// The criteria: a leaf predicts the mean (Squared), the median (Absolute), the median corrected by
// the mean of the residuals near it (Huber), or the quantile at a level (Quantile). Huber and
// Quantile are for boosting only.
const (
	Squared  Criterion = "squared"
	Absolute Criterion = "absolute"
	Huber    Criterion = "huber"
	Quantile Criterion = "quantile"
)

// ForestOptions are the options of a random forest.
type ForestOptions struct {
	// Trees is the number of trees, from 1 to 100000.
	Trees int `json:"trees"`
	// MaxDepth is the maximum number of splits between root and leaf, from 1 to 64.
	MaxDepth int `json:"max_depth"`
	// MinLeaf is the minimum number of distinct examples in a leaf; 0 means 1.
	MinLeaf int `json:"min_leaf"`
	// FeaturesPerSplit is the number of features, drawn at each node, that compete for a split; 0
	// means all.
	FeaturesPerSplit int `json:"features_per_split"`
	// Criterion is Absolute if empty.
	Criterion Criterion `json:"criterion"`
	// Bootstrap draws each tree's examples with replacement.
	Bootstrap bool `json:"bootstrap"`
	// Transform is None if empty.
	Transform Transform `json:"transform"`
	// Seed of all random numbers.
	Seed uint64 `json:"seed"`
	// Folds of the calibration; 0 means 5, or the number of configurations if that is less. More
	// folds than configurations are an error. A negative number skips calibration and scores; such
	// a regressor has no bounds.
	Folds int `json:"folds"`
	// MinExamples and MinSettings are the minimum for a fit, which otherwise returns
	// ErrTooFewExamples; 0 means 20 and 5.
	MinExamples int `json:"-"`
	MinSettings int `json:"-"`
	// Threads is the maximum number of goroutines; 0 means GOMAXPROCS - 1, at least 1.
	Threads int `json:"-"`
	// Progress, if not nil, is called after each tree with the number of completed and planned
	// trees, including trees for calibration. Calls come from several goroutines, one at a
	// time and in order.
	Progress func(done, planned int) `json:"-"`
}

const (
	maxTrees     = 100_000
	maxDepth     = 64
	minExamples  = 20 // below 20 no bound at 0.95 exists: ceil(0.95 (n+1)) > n
	minSettings  = 5
	defaultFolds = 5
)

// resolve checks the options and fills in defaults.
func (o ForestOptions) resolve(features int) (ForestOptions, error) {
	o.MinLeaf = cmp.Or(o.MinLeaf, 1)
	o.Criterion = cmp.Or(o.Criterion, Absolute)
	o.Transform = cmp.Or(o.Transform, None)
	o.Folds = cmp.Or(o.Folds, defaultFolds)
	o.MinExamples = cmp.Or(o.MinExamples, minExamples)
	o.MinSettings = cmp.Or(o.MinSettings, minSettings)
	o.Threads = cmp.Or(o.Threads, max(1, runtime.GOMAXPROCS(0)-1))
	for _, c := range []struct {
		name           string
		value, low, up int
	}{
		{"trees", o.Trees, 1, maxTrees},
		{"max_depth", o.MaxDepth, 1, maxDepth},
		{"min_leaf", o.MinLeaf, 1, math.MaxInt32},
		{"features_per_split", o.FeaturesPerSplit, 0, features},
		{"threads", o.Threads, 1, 1024},
		{"min_examples", o.MinExamples, 1, math.MaxInt32},
		{"min_settings", o.MinSettings, 1, math.MaxInt32},
	} {
		if c.value < c.low || c.value > c.up {
			return o, fmt.Errorf("%w: %s is %d, want %d to %d", ErrBadOptions, c.name, c.value,
				c.low, c.up)
		}
	}
	if o.Folds == 1 {
		return o, fmt.Errorf("%w: folds is 1, want 2 or more, or less than 0 for none",
			ErrBadOptions)
	}
	if o.Criterion != Squared && o.Criterion != Absolute {
		return o, fmt.Errorf("%w: criterion is %q", ErrBadOptions, o.Criterion)
	}
	if o.Transform != None && o.Transform != Log {
		return o, fmt.Errorf("%w: transform is %q", ErrBadOptions, o.Transform)
	}
	return o, nil
}

// FitForest grows a random forest (Breiman 2001) and calibrates it: it fits again without each fold
// of configurations, and the errors on the held-out folds form the table of bounds and
// probabilities.
//
// Equal examples in any order, options and seed give the same bytes for any number of threads. It
// returns ctx's error when ctx ends.
func FitForest(ctx context.Context, d *Dataset, o ForestOptions) (*Regressor, error) {
	o, err := o.resolve(len(d.Features))
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	sorted, err := d.prepare(o.Transform, o.MinExamples, o.MinSettings, o.Folds)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	r, err := fitForest(ctx, sorted, o)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", d.TargetName, err)
	}
	return r, nil
}

func fitForest(ctx context.Context, d *Dataset, o ForestOptions) (*Regressor, error) {
	folds := d.folds(o.Folds, o.Seed)
	few := d.thinned()
	cases := few.levelCases()
	if folds == nil {
		cases = nil
	}
	progress := newProgress(o.Progress, o.Trees*(1+foldCount(folds)+len(cases)))
	trees, err := growForest(ctx, d, o, progress)
	if err != nil {
		return nil, err
	}
	r := &Regressor{
		ensemble: ensemble{trees: trees, average: true},
		Manifest: describe(d, o.Transform),
	}
	r.Manifest.Family, r.Manifest.Forest = FamilyForest, &o
	if folds == nil {
		return r, nil
	}
	again := func(train *Dataset) (func(row []float64) float64, error) {
		trees, err := growForest(ctx, train, o, progress)
		e := ensemble{trees: trees, average: true}
		return e.predict, err
	}
	predicted, err := OutOfFold(d, folds, again)
	if err != nil {
		return nil, err
	}
	r.Manifest.calibrate(d, predicted, folds, o.Seed)
	return r, r.Manifest.leaveLevelsOut(ctx, few, cases, again)
}

// growForest grows the trees on o.Threads goroutines. They take tree numbers from a counter, and a
// tree depends on its number only.
func growForest(
	ctx context.Context, d *Dataset, o ForestOptions, done *progressCounter,
) ([]tree, error) {
	g := newGrowth(d, o)
	if g.constant() {
		done.add(o.Trees)
		return []tree{g.newGrower().tree(0)}, ctx.Err()
	}
	trees := make([]tree, o.Trees)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(o.Threads, o.Trees) {
		workers.Go(func() {
			grower := g.newGrower()
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(trees) {
					return
				}
				trees[n] = grower.tree(n)
				done.add(1)
			}
		})
	}
	workers.Wait()
	return trees, ctx.Err()
}

// newGrowth numbers the examples by target, so that the items of nodes near the leaves are close in
// memory.
func newGrowth(d *Dataset, o ForestOptions) *growth {
	target := o.Transform.apply(d.Target)
	byY := sortedOrder(target)
	g := &growth{
		bins:    bin(d.Columns, o.Threads),
		target:  pick(target, byY),
		weight:  pick(d.Weight, byY),
		number:  make([]int32, len(byY)),
		options: o,
	}
	for n, example := range byY {
		g.number[example] = int32(n)
	}
	parallel(o.Threads, len(g.bins.codes), 1, func(_, from, to int) {
		for f := from; f < to; f++ {
			g.bins.codes[f] = pick(g.bins.codes[f], byY)
		}
	})
	g.bins.rows = g.bins.byExample(o.Threads)
	g.sign = make([]int, len(d.Features))
	for f, feature := range d.Features {
		g.sign[f] = feature.Monotone
		g.hasSigns = g.hasSigns || feature.Monotone != 0
	}
	g.centred = center(target, byY)
	g.y = pick(g.y, byY)
	g.units = newUnits(g.y, g.heaviest())
	return g
}

// constant reports whether all targets are equal: one leaf suffices.
func (g *growth) constant() bool {
	return g.target[0] == g.target[len(g.target)-1]
}
