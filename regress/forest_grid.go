package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Grid is a set of forest options to compare: every combination of the lists. An empty list stands
// for the one value of the options.
type Grid struct {
	Trees, MaxDepth, MinLeaf, FeaturesPerSplit []int
	Criteria                                   []Criterion
	// Shuffles is the number of random assignments of configurations to folds; scores are the means
	// over all. 0 means 1.
	Shuffles int
}

// PaperGrid returns as many combinations as the paper searched, 252 (DOI 10.1145/3427921.3450233,
// table 7). All features, their square root or their binary logarithm compete for a split. The
// paper names three of its seven numbers of trees: the first, the last and 150.
func PaperGrid(features int) Grid {
	root, logarithm := int(math.Sqrt(float64(features))), int(math.Log2(float64(features)))
	return Grid{
		Trees:            []int{50, 100, 150, 500, 1000, 1500, 2000},
		MaxDepth:         []int{4, 5, 6, 7, 8, 9},
		FeaturesPerSplit: []int{0, max(1, root), max(1, logarithm)},
		Criteria:         []Criterion{Squared, Absolute},
	}
}

// GridPoint is one combination and its out-of-fold errors in the unit of the target. R2 and MAPE
// are NaN if Scores would not know them.
type GridPoint struct {
	Options            ForestOptions
	MSE, MAE, R2, MAPE float64
}

// SearchForest compares all options of a grid by folds of configurations. It returns them in the
// order of the grid's lists (the last list fastest, in the order of its fields), and the index of
// the one with the smallest MSE.
//
// The search is nested. Trees depend on their number and nodes on their path only, so the first
// trees of many are a smaller forest, and trees cut at a depth are those grown to it. One forest
// for each fold, criterion, number of features and minimum leaf serves all numbers of trees and all
// depths. Folds, Seed, Bootstrap, Transform and the rest come from o. It returns ctx's error when
// ctx ends.
func SearchForest(
	ctx context.Context, d *Dataset, g Grid, o ForestOptions,
) (points []GridPoint, best int, err error) {
	if points, best, err = searchForest(ctx, d, g, o); err != nil {
		return nil, 0, fmt.Errorf("search forest of %s: %w", d.TargetName, err)
	}
	return points, best, nil
}

func searchForest(
	ctx context.Context, d *Dataset, g Grid, o ForestOptions,
) (points []GridPoint, best int, err error) {
	for _, c := range g.combinations(o) {
		if c, err = c.resolve(len(d.Features)); err != nil {
			return nil, 0, err
		}
		points = append(points, GridPoint{Options: c})
	}
	o = points[0].Options
	if d, err = d.prepare(o.Transform, o.MinExamples, o.MinSettings, o.Folds); err != nil {
		return nil, 0, err
	}
	s := &gridSearch{
		d:      d,
		points: points,
		sums:   make([]moments, len(points)),
		nests:  nests(points),
	}
	shuffles := max(g.Shuffles, 1)
	fits := 0
	for _, n := range s.nests {
		fits += n.options.Trees * foldCount(d.folds(o.Folds, o.Seed))
	}
	done := newProgress(o.Progress, shuffles*fits)
	for shuffle := range uint64(shuffles) {
		folds := d.folds(o.Folds, o.Seed+shuffle)
		if folds == nil {
			return nil, 0, fmt.Errorf("%w: no configurations can be held out", ErrTooFewExamples)
		}
		if err := s.shuffle(ctx, folds, done); err != nil {
			return nil, 0, err
		}
	}
	for i := range points {
		p := &points[i]
		p.MSE, p.MAE, p.R2, p.MAPE = s.sums[i].scores()
		if p.MSE < points[best].MSE {
			best = i
		}
	}
	return points, best, nil
}

// combinations returns the options of every point.
func (g Grid) combinations(o ForestOptions) []ForestOptions {
	all := []ForestOptions{o}
	for _, list := range []struct {
		values []int
		set    func(o *ForestOptions, value int)
	}{
		{g.Trees, func(o *ForestOptions, v int) { o.Trees = v }},
		{g.MaxDepth, func(o *ForestOptions, v int) { o.MaxDepth = v }},
		{g.MinLeaf, func(o *ForestOptions, v int) { o.MinLeaf = v }},
		{g.FeaturesPerSplit, func(o *ForestOptions, v int) { o.FeaturesPerSplit = v }},
		{indices(g.Criteria), func(o *ForestOptions, v int) { o.Criterion = g.Criteria[v] }},
	} {
		if len(list.values) == 0 {
			continue
		}
		var next []ForestOptions
		for _, o := range all {
			for _, v := range list.values {
				list.set(&o, v)
				next = append(next, o)
			}
		}
		all = next
	}
	return all
}

func indices(criteria []Criterion) []int {
	var all []int
	for i := range criteria {
		all = append(all, i)
	}
	return all
}

// nest is a forest that serves several points.
type nest struct {
	options ForestOptions // with their maximum number of trees and depth
	points  []int         // in the order of their numbers of trees
	depths  []int         // sorted and distinct
}

// nests groups the points that differ in trees and depth only.
func nests(points []GridPoint) []nest {
	type key struct {
		criterion          Criterion
		features, smallest int
	}
	var all []nest
	number := make(map[key]int)
	for i, p := range points {
		k := key{p.Options.Criterion, p.Options.FeaturesPerSplit, p.Options.MinLeaf}
		at, known := number[k]
		if !known {
			at = len(all)
			number[k] = at
			all = append(all, nest{options: p.Options})
		}
		n := &all[at]
		n.options.Trees = max(n.options.Trees, p.Options.Trees)
		n.options.MaxDepth = max(n.options.MaxDepth, p.Options.MaxDepth)
		n.points = append(n.points, i)
		n.depths = append(n.depths, p.Options.MaxDepth)
	}
	for i := range all {
		n := &all[i]
		slices.Sort(n.depths)
		n.depths = slices.Compact(n.depths)
		slices.SortStableFunc(n.points, func(a, b int) int {
			return cmp.Compare(points[a].Options.Trees, points[b].Options.Trees)
		})
	}
	return all
}

type gridSearch struct {
	d      *Dataset
	points []GridPoint
	sums   []moments // of the errors of each point
	nests  []nest
}

// shuffle adds the errors of all points for one assignment of the configurations to folds.
func (s *gridSearch) shuffle(ctx context.Context, folds []int, done *progressCounter) error {
	predicted := make([][]float64, len(s.points))
	for i := range predicted {
		predicted[i] = make([]float64, s.d.Len())
	}
	for fold := range foldCount(folds) {
		train, test := deal(folds, fold)
		examples := s.d.Subset(train)
		for _, n := range s.nests {
			trees, err := growForest(ctx, examples, n.options, done)
			if err != nil {
				return fmt.Errorf("fold %d: %w", fold, err)
			}
			parallel(n.options.Threads, len(test), 4, func(_, from, to int) {
				for i, row := range test[from:to] {
					if i > 0 && s.d.sameFeatures(row, test[from+i-1]) {
						s.repeat(&n, row, test[from+i-1], predicted)
					} else {
						s.predict(&n, trees, row, predicted)
					}
				}
			})
		}
	}
	for i := range s.points {
		for k := range predicted[i] {
			predicted[i][k] = s.points[i].Options.Transform.invert(predicted[i][k])
		}
		for _, sum := range errorSums(s.d.Target, predicted[i], s.d.Group) {
			s.sums[i].add(sum)
		}
	}
	return nil
}

// deal returns the examples outside and inside a fold.
func deal(folds []int, fold int) (train, test []int) {
	for i, f := range folds {
		if f == fold {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// predict adds up trees at all depths, and stores the mean wherever a point has as many trees.
func (s *gridSearch) predict(n *nest, trees []tree, example int, predicted [][]float64) {
	row := s.d.Row(example, nil)
	sums := make([]float64, len(n.depths))
	next := 0
	for i := range trees {
		trees[i].predictCut(row, n.depths, sums)
		for ; next < len(n.points); next++ {
			o := &s.points[n.points[next]].Options
			// A constant target has one tree, regardless of the options.
			if o.Trees > i+1 && i+1 < len(trees) {
				break
			}
			depth, _ := slices.BinarySearch(n.depths, o.MaxDepth)
			predicted[n.points[next]][example] = sums[depth] / float64(i+1)
		}
	}
}

// repeat copies the predictions of an example with equal features.
func (s *gridSearch) repeat(n *nest, example, same int, predicted [][]float64) {
	for _, point := range n.points {
		predicted[point][example] = predicted[point][same]
	}
}

// predictCut adds to sums the predictions of the tree cut at each of the depths, which are sorted.
func (t *tree) predictCut(row []float64, depths []int, sums []float64) {
	at, depth := int32(0), 0
	if len(t.nodes) == 0 {
		at = -1
	}
	for k := 0; k < len(depths); {
		if at < 0 {
			sums[k] += t.leaves[-1-at].value
			k++
			continue
		}
		n := &t.nodes[at]
		if depth == depths[k] {
			sums[k] += n.value
			k++
			continue
		}
		at = n.right
		if row[n.feature] <= n.threshold {
			at = n.left
		}
		depth++
	}
}
