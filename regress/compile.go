package regress

import (
	"fmt"
	"math"
	"slices"
)

const (
	// maxCells is the maximum size of a table (8 MiB), maxPaint the maximum number of additions
	// to fill it (about 0.1 s).
	maxCells = 1 << 20
	maxPaint = 1 << 27
)

// form is a way to predict. The row has as many finite numbers as the regressor has features.
type form interface {
	predict(row []float64) float64
}

// Compile returns the predictor of a regressor. It predicts by a table of all cells between
// thresholds if that is small enough, otherwise by trees in a flat layout. All forms give the same
// numbers. Its error wraps ErrBadFile if a prediction would not be finite.
func Compile(r *Regressor) (*Predictor, error) { return compile(r, maxPaint) }

// compile fills a table only if that takes at most maxAdditions additions: for a few predictions a
// table is not worthwhile.
func compile(r *Regressor, maxAdditions int) (*Predictor, error) {
	base, transform := r.Manifest.base(), r.Manifest.Transform
	if base != nil {
		transform = None // of the trees: the base is added first
	}
	if err := checkRange(&r.ensemble, transform); err != nil {
		return nil, fmt.Errorf("compile regressor of %s: %w: %w", r.Manifest.Target, ErrBadFile,
			err)
	}
	p := newPredictor(&r.Manifest)
	axes := axesOf(&r.ensemble, len(p.features))
	if cells, fits := countCells(axes); fits && cells*len(r.trees) <= maxAdditions {
		p.form = paint(&r.ensemble, axes, cells, transform)
	} else if trees := completed(&r.ensemble, axes, transform); trees != nil {
		p.form = trees
	} else if trees := interleave(&r.ensemble, axes, transform); trees != nil {
		p.form = trees
	} else {
		p.form = flatten(&r.ensemble, transform)
	}
	if base != nil {
		p.form = &correctedForm{base: base, trees: p.form, transform: r.Manifest.Transform}
	}
	return p, nil
}

// checkRange checks that the sum of any leaves and its inverse transform are finite.
func checkRange(e *ensemble, t Transform) error {
	low, high, share := 0.0, 0.0, e.share()
	for i := range e.trees {
		least, most := math.Inf(1), math.Inf(-1)
		for _, l := range e.trees[i].leaves {
			least, most = min(least, l.value), max(most, l.value)
		}
		low += least * share
		high += most * share
	}
	if x, y := t.invert(low), t.invert(high); !finite(x) || !finite(y) || t == Log && x <= 0 {
		return fmt.Errorf("predictions range from %g to %g, want finite ones, and positive ones of a logarithm", x, y)
	}
	return nil
}

// table predicts by a look-up: between its thresholds an ensemble is constant.
type table struct {
	axes  []axis
	cells []float64 // cells along the last feature are adjacent
}

// axis is one dimension of a table.
type axis struct {
	thresholds []float64 // sorted and distinct
	stride     int
}

// axesOf collects the thresholds of each feature.
func axesOf(e *ensemble, features int) []axis {
	gathered := make([]thresholdSet, features)
	for i := range e.trees {
		for _, n := range e.trees[i].nodes {
			gathered[n.feature].add(n.threshold)
		}
	}
	axes := make([]axis, features)
	stride := 1
	for f := features - 1; f >= 0; f-- {
		gathered[f].merge()
		axes[f] = axis{thresholds: gathered[f].sorted, stride: stride}
		if stride <= maxCells {
			stride *= len(axes[f].thresholds) + 1
		}
	}
	return axes
}

// thresholdSet collects distinct numbers. New ones are merged into the sorted ones in batches.
type thresholdSet struct{ sorted, fresh []float64 }

func (g *thresholdSet) add(x float64) {
	if _, known := slices.BinarySearch(g.sorted, x); known {
		return
	}
	if g.fresh = append(g.fresh, x); len(g.fresh) >= 64+len(g.sorted)/2 {
		g.merge()
	}
}

func (g *thresholdSet) merge() {
	g.sorted = append(g.sorted, g.fresh...)
	slices.Sort(g.sorted)
	g.sorted = slices.Compact(g.sorted)
	g.fresh = g.fresh[:0]
}

func countCells(axes []axis) (cells int, fits bool) {
	cells = 1
	for _, a := range axes {
		if cells *= len(a.thresholds) + 1; cells > maxCells {
			return 0, false
		}
	}
	return cells, true
}

// predict finds the cell. Its number on each axis is the number of thresholds below the value,
// because a value equal to a threshold goes left.
func (t *table) predict(row []float64) float64 {
	at := 0
	for f := range t.axes {
		a := &t.axes[f]
		at += a.cell(row[f]) * a.stride
	}
	return t.cells[at]
}

func (a *axis) cell(x float64) int {
	if len(a.thresholds) > 16 {
		n, _ := slices.BinarySearch(a.thresholds, x)
		return n
	}
	n := 0
	for _, t := range a.thresholds {
		if x > t {
			n++
		}
	}
	return n
}

// paint adds every tree to the boxes of its leaves, in the order of the trees.
func paint(e *ensemble, axes []axis, cells int, transform Transform) *table {
	b := &brush{table: &table{axes: axes, cells: make([]float64, cells)}, share: e.share(),
		low: make([]int, len(axes)), high: make([]int, len(axes))}
	for i := range e.trees {
		for f, a := range axes {
			b.low[f], b.high[f] = 0, len(a.thresholds)+1
		}
		b.tree = &e.trees[i]
		b.paint(0)
	}
	for i, y := range b.table.cells {
		b.table.cells[i] = transform.invert(y)
	}
	return b.table
}

// brush adds one tree to a table; low and high bound the box of the current node.
type brush struct {
	*table
	tree      *tree
	share     float64
	low, high []int
}

func (b *brush) paint(at int32) {
	if len(b.tree.nodes) == 0 {
		at = -1
	}
	if at < 0 {
		b.fill(0, 0, b.tree.leaves[-1-at].value*b.share)
		return
	}
	n := &b.tree.nodes[at]
	f := n.feature
	cut, _ := slices.BinarySearch(b.axes[f].thresholds, n.threshold)
	low, high := b.low[f], b.high[f]
	if left := min(high, cut+1); low < left {
		b.high[f] = left
		b.paint(n.left)
		b.high[f] = high
	}
	if right := max(low, cut+1); right < high {
		b.low[f] = right
		b.paint(n.right)
		b.low[f] = low
	}
}

// fill adds a value to all cells of the box, from axis f on.
func (b *brush) fill(f, at int, value float64) {
	low, high := b.low[f], b.high[f]
	if f == len(b.axes)-1 {
		for i := range b.cells[at+low : at+high] {
			b.cells[at+low+i] += value
		}
		return
	}
	for c := low; c < high; c++ {
		b.fill(f+1, at+c*b.axes[f].stride, value)
	}
}

// flat predicts by walking trees in a flat layout.
type flat struct {
	roots     []int32
	nodes     []flatNode
	leaves    []float64 // already multiplied by the share
	transform Transform
}

// flatNode has children as in tree, but numbered across all trees.
type flatNode struct {
	threshold            float64
	feature, left, right int32
}

func flatten(e *ensemble, transform Transform) *flat {
	f := &flat{transform: transform}
	for i := range e.trees {
		t := &e.trees[i]
		node, leaf := int32(len(f.nodes)), int32(len(f.leaves))
		child := func(c int32) int32 {
			if c < 0 {
				return c - leaf
			}
			return c + node
		}
		root := int32(0)
		if len(t.nodes) == 0 {
			root = -1
		}
		f.roots = append(f.roots, child(root))
		for _, n := range t.nodes {
			f.nodes = append(f.nodes, flatNode{
				n.threshold, n.feature, child(n.left), child(n.right),
			})
		}
		for _, l := range t.leaves {
			f.leaves = append(f.leaves, l.value*e.share())
		}
	}
	return f
}

func (f *flat) predict(row []float64) float64 {
	sum := 0.0
	for _, at := range f.roots {
		for at >= 0 {
			n := &f.nodes[at]
			at = n.right
			if row[n.feature] <= n.threshold {
				at = n.left
			}
		}
		sum += f.leaves[-1-at]
	}
	return f.transform.invert(sum)
}
