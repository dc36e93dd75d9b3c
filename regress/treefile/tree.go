package treefile

import (
	"fmt"
	"math"
	"slices"
)

// Point is a value of the tree's function. Its row has one finite number per feature.
type Point struct {
	Row   []float64
	Value float64
}

// Tree is a binary regression tree. Node 0 is the root; a child c >= 0 is node c, and a child c < 0
// is leaf -1-c, as in LightGBM's text format.
type Tree struct {
	features []Feature
	nodes    []node
	leaves   []float64
}

// node sends a row to the left child if its feature is at most the threshold.
type node struct {
	feature     int
	threshold   float64
	left, right int
}

// Grow returns a tree with one leaf for each distinct row of the points; points with equal rows
// share a leaf with their mean. Rows are separated by the first feature in which they differ, so
// the order of the features decides which leaf a row between points gets. The ranges of the
// features are set from the rows.
func Grow(features []Feature, points []Point) (*Tree, error) {
	if len(points) == 0 {
		return nil, fmt.Errorf("grow tree: no points")
	}
	t := &Tree{features: slices.Clone(features)}
	for i := range points {
		p := &points[i]
		if !isRow(p.Row, features) || !isFinite(p.Value) {
			return nil, fmt.Errorf("grow tree: point %d: row %g, value %g", i, p.Row, p.Value)
		}
		for f, x := range p.Row {
			own := &t.features[f]
			if i == 0 {
				own.Min, own.Max = x, x
			}
			own.Min, own.Max = min(own.Min, x), max(own.Max, x)
		}
	}
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b Point) int {
		if c := slices.Compare(a.Row, b.Row); c != 0 {
			return c
		}
		return slices.Compare([]float64{a.Value}, []float64{b.Value})
	})
	t.grow(sorted, 0)
	return t, nil
}

// isRow reports whether a row has one finite number per feature.
func isRow(row []float64, features []Feature) bool {
	return len(row) == len(features) &&
		!slices.ContainsFunc(row, func(x float64) bool { return !isFinite(x) })
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// grow adds a subtree for sorted points, which are equal in the features before feature, and
// returns its root.
func (t *Tree) grow(points []Point, feature int) (root int) {
	for feature < len(t.features) && points[0].Row[feature] == points[len(points)-1].Row[feature] {
		feature++
	}
	if feature == len(t.features) {
		return t.addLeaf(points)
	}
	cut := middleCut(points, feature)
	root = len(t.nodes)
	t.nodes = append(t.nodes, node{
		feature:   feature,
		threshold: between(points[cut-1].Row[feature], points[cut].Row[feature]),
	})
	left := t.grow(points[:cut], feature)
	right := t.grow(points[cut:], feature)
	t.nodes[root].left, t.nodes[root].right = left, right
	return root
}

func (t *Tree) addLeaf(points []Point) (root int) {
	mean := 0.0
	for i := range points {
		mean += (points[i].Value - mean) / float64(i+1)
	}
	t.leaves = append(t.leaves, mean)
	return -len(t.leaves)
}

// middleCut returns the number of points before the change of a feature that is closest to the
// middle of points sorted by it.
func middleCut(points []Point, feature int) int {
	changes := func(i int) bool {
		return i > 0 && i < len(points) && points[i-1].Row[feature] != points[i].Row[feature]
	}
	for distance := 0; ; distance++ {
		for _, cut := range []int{len(points)/2 - distance, len(points)/2 + distance} {
			if changes(cut) {
				return cut
			}
		}
	}
}

// between returns a threshold that separates a from the larger b.
func between(a, b float64) float64 {
	if middle := a/2 + b/2; middle >= a && middle < b {
		return middle
	}
	return a
}
