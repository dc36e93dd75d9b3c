package regress

import "slices"

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

// interleavedNode sends a row to left + 1 if its code is above last, else to left.
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
