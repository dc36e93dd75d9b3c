package baseline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// ForestOptions are the options of a random forest.
type ForestOptions struct {
	Trees    int // 1 or more
	MaxDepth int // maximum number of splits between root and leaf, 1 or more
	Seed     uint64
	// Log fits the logarithm of the target, which must be above 0. A prediction is then about the
	// median of the target.
	Log bool
}

// Forest grows a random forest (Breiman 2001): each tree gets examples drawn with replacement, and
// splits them by the feature and threshold with the least squared error. Categories are compared by
// the index of their level. It returns ctx's error when ctx ends.
func Forest(ctx context.Context, train *Dataset, o ForestOptions) (Predict, error) {
	if err := train.Validate(); err != nil {
		return nil, err
	}
	if o.Trees < 1 || o.MaxDepth < 1 {
		return nil, fmt.Errorf("%d trees of depth %d, want 1 or more", o.Trees, o.MaxDepth)
	}
	g := &grower{rows: train.Rows, target: train.Target, maxDepth: o.MaxDepth}
	if o.Log {
		g.target = make([]float64, len(train.Target))
		for i, y := range train.Target {
			if y <= 0 {
				return nil, fmt.Errorf("target of example %d is %g, want above 0", i, y)
			}
			g.target[i] = math.Log(y)
		}
	}
	g.sortRows(len(train.Features))
	trees, err := g.growAll(ctx, o)
	if err != nil {
		return nil, err
	}
	return func(row []float64) float64 {
		mean := 0.0
		for _, t := range trees {
			mean += t.predict(row) / float64(len(trees))
		}
		if o.Log {
			return math.Exp(mean)
		}
		return mean
	}, nil
}

// treeNode is a leaf if left is nil. A row goes left if its feature is at most the threshold.
type treeNode struct {
	value       float64
	feature     int
	threshold   float64
	left, right *treeNode
}

func (t *treeNode) predict(row []float64) float64 {
	for t.left != nil {
		if row[t.feature] <= t.threshold {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t.value
}

// grower grows trees on the same examples.
type grower struct {
	rows     [][]float64
	target   []float64
	maxDepth int
	sorted   [][]int // numbers of the examples by each feature
}

func (g *grower) sortRows(features int) {
	for f := range features {
		order := make([]int, len(g.rows))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(g.rows[a][f], g.rows[b][f])
		})
		g.sorted = append(g.sorted, order)
	}
}

// growAll grows the trees on all processors. Each tree has its own random numbers, so the result
// does not depend on the number of processors.
func (g *grower) growAll(ctx context.Context, o ForestOptions) ([]*treeNode, error) {
	trees := make([]*treeNode, o.Trees)
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range trees {
		all.Go(func() error {
			if ctx.Err() == nil {
				trees[i] = g.grow(rand.New(rand.NewPCG(o.Seed, uint64(i))))
			}
			return ctx.Err()
		})
	}
	return trees, all.Wait()
}

// grow grows a tree on examples that are drawn with replacement.
func (g *grower) grow(random *rand.Rand) *treeNode {
	drawn := make([]float64, len(g.rows)) // how often each example was drawn
	for range drawn {
		drawn[random.IntN(len(drawn))]++
	}
	sorted := make([][]int, len(g.sorted))
	for f, order := range g.sorted {
		for _, i := range order {
			if drawn[i] > 0 {
				sorted[f] = append(sorted[f], i)
			}
		}
	}
	return g.split(sorted, drawn, 0)
}

// split grows the subtree of some examples, sorted by each feature.
func (g *grower) split(sorted [][]int, drawn []float64, depth int) *treeNode {
	var all leafSum
	for _, i := range sorted[0] {
		all.add(g.target[i], drawn[i])
	}
	t := &treeNode{value: all.sum / all.count}
	if depth == g.maxDepth || !g.bestSplit(t, sorted, drawn, all) {
		return t
	}
	left, right := make([][]int, len(sorted)), make([][]int, len(sorted))
	for f, order := range sorted {
		for _, i := range order {
			if g.rows[i][t.feature] <= t.threshold {
				left[f] = append(left[f], i)
			} else {
				right[f] = append(right[f], i)
			}
		}
	}
	t.left, t.right = g.split(left, drawn, depth+1), g.split(right, drawn, depth+1)
	return t
}

// bestSplit sets feature and threshold of the split with the least squared error; false if no split
// lowers it.
func (g *grower) bestSplit(t *treeNode, sorted [][]int, drawn []float64, all leafSum) (found bool) {
	// The squared error is the sum of squared targets, which no split changes, less the gain.
	best := all.gain() * (1 + 1e-12)
	for f, order := range sorted {
		var left leafSum
		for k, i := range order[:len(order)-1] {
			left.add(g.target[i], drawn[i])
			x, next := g.rows[i][f], g.rows[order[k+1]][f]
			if x == next {
				continue
			}
			right := leafSum{all.count - left.count, all.sum - left.sum}
			if gain := left.gain() + right.gain(); gain > best {
				best, found = gain, true
				t.feature, t.threshold = f, between(x, next)
			}
		}
	}
	return found
}

// between returns a threshold that separates a from the larger b.
func between(a, b float64) float64 {
	if middle := a/2 + b/2; middle >= a && middle < b {
		return middle
	}
	return a
}

// leafSum sums the targets of a leaf.
type leafSum struct{ count, sum float64 }

func (s *leafSum) add(y, weight float64) { s.count, s.sum = s.count+weight, s.sum+weight*y }

func (s leafSum) gain() float64 { return s.sum * s.sum / s.count }
