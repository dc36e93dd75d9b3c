package regress

import (
	"slices"
)

// interleavedTrees predicts by walking eight trees at once: while one waits for its next node, the
// others proceed. Thresholds are numbered and a row is coded once, by the number of thresholds of
// each feature below its value. A comparison is then one of small integers without a branch.
//
// Both children of a node are adjacent, the left one first. A leaf is a node that points to itself,
// so that trees of unequal depth can be walked together.
type interleavedTrees struct {
	coders    []thresholdCoder
	nodes     []interleavedNode
	values    []float64 // of the nodes that are leaves, times the share
	groups    []interleavedGroup
	transform Transform
}

// interleavedNode sends a row to left + 1 if its code is above last, otherwise to left.
type interleavedNode struct {
	left          uint32
	feature, last uint16
}

// interleavedGroup is eight trees and the maximum number of steps to a leaf. Missing trees of the
// last group have the root of the first.
type interleavedGroup struct {
	roots [8]uint32
	trees int
	depth int
}

const (
	maxThresholds = 1<<16 - 1 // thresholds of a feature
	maxFeatures   = 64        // codes of a row fit on the stack
	maxNodes      = 1 << 30
)

// interleave returns the form; nil if there are too many thresholds, features or nodes.
func interleave(e *ensemble, axes []axis, transform Transform) *interleavedTrees {
	nodes := 0
	for i := range e.trees {
		nodes += len(e.trees[i].nodes) + len(e.trees[i].leaves)
	}
	if len(axes) > maxFeatures || nodes > maxNodes ||
		slices.ContainsFunc(axes, func(a axis) bool { return len(a.thresholds) > maxThresholds }) {
		return nil
	}
	f := &interleavedTrees{transform: transform, coders: make([]thresholdCoder, len(axes)),
		nodes: make([]interleavedNode, 0, nodes), values: make([]float64, nodes)}
	for k, a := range axes {
		f.coders[k] = newCoder(a.thresholds)
	}
	for i := range e.trees {
		if i%8 == 0 {
			f.groups = append(f.groups, interleavedGroup{})
		}
		g := &f.groups[len(f.groups)-1]
		root, depth := f.add(&e.trees[i], axes, e.share())
		for lane := g.trees; lane < 8; lane++ {
			g.roots[lane] = root
		}
		g.trees++
		g.depth = max(g.depth, depth)
	}
	return f
}

// add appends a tree level by level and returns its root and its depth.
func (f *interleavedTrees) add(t *tree, axes []axis, share float64) (root uint32, depth int) {
	root = uint32(len(f.nodes))
	f.nodes = append(f.nodes, interleavedNode{})
	level := []int32{0}
	if len(t.nodes) == 0 {
		level[0] = -1
	}
	for first := root; ; depth++ {
		var next []int32
		inner := false
		for i, at := range level {
			place := first + uint32(i)
			if at < 0 {
				f.nodes[place] = interleavedNode{left: place, last: maxThresholds}
				f.values[place] = t.leaves[-1-at].value * share
				continue
			}
			inner = true
			n := &t.nodes[at]
			last, _ := slices.BinarySearch(axes[n.feature].thresholds, n.threshold)
			f.nodes[place] = interleavedNode{
				left:    uint32(len(f.nodes)),
				feature: uint16(n.feature),
				last:    uint16(last),
			}
			f.nodes = append(f.nodes, interleavedNode{}, interleavedNode{})
			next = append(next, n.left, n.right)
		}
		if !inner {
			return root, depth
		}
		first += uint32(len(level))
		level = next
	}
}

func (f *interleavedTrees) predict(row []float64) float64 {
	var codes [maxFeatures]uint16
	for k := range f.coders {
		codes[k] = f.coders[k].code(row[k])
	}
	nodes, sum := f.nodes, 0.0
	for i := range f.groups {
		g := &f.groups[i]
		a, b, c, d := g.roots[0], g.roots[1], g.roots[2], g.roots[3]
		e, h, k, m := g.roots[4], g.roots[5], g.roots[6], g.roots[7]
		for range g.depth {
			a, b = nodes[a].step(&codes), nodes[b].step(&codes)
			c, d = nodes[c].step(&codes), nodes[d].step(&codes)
			e, h = nodes[e].step(&codes), nodes[h].step(&codes)
			k, m = nodes[k].step(&codes), nodes[m].step(&codes)
		}
		ends := [8]uint32{a, b, c, d, e, h, k, m}
		for _, leaf := range ends[:g.trees] {
			sum += f.values[leaf]
		}
	}
	return f.transform.invert(sum)
}

// step returns the next node: left, plus the sign bit of last - code.
func (n *interleavedNode) step(codes *[maxFeatures]uint16) uint32 {
	return n.left + (uint32(n.last)-uint32(codes[n.feature%maxFeatures]))>>31
}

// thresholdCoder numbers the values of a feature by the thresholds below them.
type thresholdCoder struct {
	thresholds []float64 // sorted; filled up with the last to 2^steps - 1
	first      int       // half of 2^steps
	count      int       // of real thresholds
}

func newCoder(thresholds []float64) thresholdCoder {
	c := thresholdCoder{first: 1, count: len(thresholds)}
	for 2*c.first-1 < len(thresholds) {
		c.first *= 2
	}
	c.thresholds = slices.Clone(thresholds)
	for len(thresholds) > 0 && len(c.thresholds) < 2*c.first-1 {
		c.thresholds = append(c.thresholds, thresholds[len(thresholds)-1])
	}
	return c
}

// code returns the number of thresholds below x, without a branch.
func (c *thresholdCoder) code(x float64) uint16 {
	if c.count == 0 {
		return 0
	}
	at := 0
	for step := c.first; step > 0; step >>= 1 {
		next := at
		if c.thresholds[at+step-1] < x {
			next = at + step
		}
		at = next
	}
	return uint16(min(at, c.count))
}

// complete predicts by walking eight trees at once that are all filled to the same depth, so that
// nodes need no pointers: the children of node i of a tree are nodes 2i+1 and 2i+2. A node is two
// bytes, its feature and the number of its threshold; the nodes of eight trees are interleaved. Two
// thousand trees of depth 6 take a quarter of a megabyte and fit a processor's cache.
type complete struct {
	coders    []thresholdCoder
	depth     int
	nodes     []uint16  // of eight trees: node 0 of each, node 1 of each, …
	leaves    []float64 // of a tree: 2^depth, times the share
	trees     int
	transform Transform
}

const (
	completeDepth = 8
	// completeNodes is the number of nodes of eight trees of that depth.
	completeNodes = 8 << completeDepth
	// alwaysLeft is a node of feature 0 with a threshold above every code.
	alwaysLeft = 255 << 8
)

// completed returns the form; nil if trees are deep, features or thresholds are too many, or most
// of the filled trees would be padding.
func completed(e *ensemble, axes []axis, transform Transform) *complete {
	c := &complete{trees: len(e.trees), transform: transform}
	leaves := 0
	for i := range e.trees {
		c.depth = max(c.depth, e.trees[i].depth())
		leaves += len(e.trees[i].leaves)
	}
	if c.depth > completeDepth || len(axes) > maxFeatures || leaves<<3 < len(e.trees)<<c.depth ||
		slices.ContainsFunc(axes, func(a axis) bool { return len(a.thresholds) > 255 }) {
		return nil
	}
	for _, a := range axes {
		c.coders = append(c.coders, newCoder(a.thresholds))
	}
	groups := (len(e.trees) + 7) / 8
	c.nodes = make([]uint16, groups*8<<c.depth+
		completeNodes) // padded for the last group
	for i := range c.nodes {
		c.nodes[i] = alwaysLeft
	}
	c.leaves = make([]float64, groups*8<<c.depth)
	for i := range e.trees {
		f := completeFiller{complete: c, tree: &e.trees[i], axes: axes, share: e.share(),
			nodes: c.nodes[i/8*8<<c.depth+i%8:], leaves: c.leaves[i<<c.depth:][:1<<c.depth]}
		f.fill(f.tree.root(), 0, 0)
	}
	return c
}

// completeFiller lays out one tree.
type completeFiller struct {
	*complete
	tree   *tree
	axes   []axis
	share  float64
	nodes  []uint16 // every eighth is the tree's
	leaves []float64
}

// fill copies a node or leaf of the tree to place i at some depth.
func (f *completeFiller) fill(at int32, i, depth int) {
	if at < 0 {
		for ; depth < f.depth; depth++ {
			i = 2*i + 1
		}
		f.leaves[i-(1<<f.depth-1)] = f.tree.leaves[-1-at].value * f.share
		return
	}
	n := &f.tree.nodes[at]
	number, _ := slices.BinarySearch(f.axes[n.feature].thresholds, n.threshold)
	f.nodes[8*i] = uint16(number<<8) | uint16(n.feature)
	f.fill(n.left, 2*i+1, depth+1)
	f.fill(n.right, 2*i+2, depth+1)
}

// predict keeps 8i for each tree, so that the next place is 16i + 8 or 16i + 16.
func (c *complete) predict(row []float64) float64 {
	var codes [maxFeatures]uint16
	for k := range c.coders {
		codes[k] = c.coders[k].code(row[k])
	}
	sum, size := 0.0, 1<<c.depth
	first := 8 * (size - 1)
	for tree := 0; tree < c.trees; tree += 8 {
		nodes := (*[completeNodes]uint16)(c.nodes[tree<<c.depth:])
		var p, q, r, s, t, u, v, w uint
		for range c.depth {
			p, q = 2*p+next(nodes, p, &codes), 2*q+next(nodes, q+1, &codes)
			r, s = 2*r+next(nodes, r+2, &codes), 2*s+next(nodes, s+3, &codes)
			t, u = 2*t+next(nodes, t+4, &codes), 2*u+next(nodes, u+5, &codes)
			v, w = 2*v+next(nodes, v+6, &codes), 2*w+next(nodes, w+7, &codes)
		}
		ends := [8]uint{p, q, r, s, t, u, v, w}
		leaves := c.leaves[tree<<c.depth:]
		for k, end := range ends[:min(8, c.trees-tree)] {
			sum += leaves[k*size+(int(end)-first)>>3]
		}
	}
	return c.transform.invert(sum)
}

// next returns 8 if the row goes left at a node and 16 if it goes right: the sign bit of threshold
// - code, shifted.
func next(nodes *[completeNodes]uint16, at uint, codes *[maxFeatures]uint16) uint {
	n := nodes[at%completeNodes]
	return 8 + (uint(n>>8)-uint(codes[n%maxFeatures]))>>60&8
}
