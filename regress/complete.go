package regress

import "slices"

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
