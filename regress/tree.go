package regress

import (
	"fmt"
	"math"
)

// tree is a binary regression tree in the numbering of LightGBM's text format: node 0 is the root,
// a child c >= 0 is node c, a child c < 0 is leaf -1-c. A tree of one leaf has no nodes. There is
// always one leaf more than nodes.
type tree struct {
	nodes  []treeNode
	leaves []treeLeaf
}

// treeNode sends a row left if its feature's value is <= threshold, otherwise right.
type treeNode struct {
	threshold   float64
	gain        float64 // reduction of the loss by the split
	value       float64 // prediction of the node as a leaf
	weight      float64 // sum of the weights of its examples
	count       int     // number of drawn examples, with repetitions
	feature     int32   // of the offered cuts
	left, right int32
}

type treeLeaf struct {
	value, weight float64
	count         int
}

// predict follows a row to its leaf.
func (t *tree) predict(row []float64) float64 {
	if len(t.nodes) == 0 {
		return t.leaves[0].value
	}
	for at := int32(0); ; {
		n := &t.nodes[at]
		at = n.right
		if row[n.feature] <= n.threshold {
			at = n.left
		}
		if at < 0 {
			return t.leaves[-1-at].value
		}
	}
}

// root returns the child number of the root.
func (t *tree) root() int32 {
	if len(t.nodes) == 0 {
		return -1
	}
	return 0
}

// depth returns the maximum number of nodes on a path to a leaf. In files of other programs parents
// may follow their children.
func (t *tree) depth() int {
	type visit struct {
		at    int32
		depth int
	}
	deepest, stack := 0, []visit{{t.root(), 0}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		deepest = max(deepest, p.depth)
		if p.at >= 0 {
			n := &t.nodes[p.at]
			stack = append(stack, visit{n.left, p.depth + 1}, visit{n.right, p.depth + 1})
		}
	}
	return deepest
}

// check returns an error unless every node and leaf is reached exactly once from the root.
func (t *tree) check() error {
	if len(t.nodes) == 0 {
		return nil
	}
	seenNodes, seenLeaves := make([]bool, len(t.nodes)), make([]bool, len(t.leaves))
	stack := []int32{0}
	reached := 0
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		seen, name, index := seenNodes, "node", at
		if at < 0 {
			seen, name, index = seenLeaves, "leaf", -1-at
		}
		if seen[index] {
			return fmt.Errorf("left_child, right_child: %s %d is used twice", name, index)
		}
		seen[index] = true
		reached++
		if at >= 0 {
			stack = append(stack, t.nodes[at].right, t.nodes[at].left)
		}
	}
	if reached != len(t.nodes)+len(t.leaves) {
		return fmt.Errorf("left_child, right_child: %d of %d nodes and leaves are never reached",
			len(t.nodes)+len(t.leaves)-reached, len(t.nodes)+len(t.leaves))
	}
	return nil
}

// ensemble predicts the sum of trees, or their mean for a forest.
type ensemble struct {
	trees   []tree
	average bool
}

// predict adds up the trees in the order and with the rounding of leaves (each tree's value times
// 1/trees), so that every form of a regressor predicts the same number.
func (e *ensemble) predict(row []float64) float64 {
	share, sum := e.share(), 0.0
	for i := range e.trees {
		sum += e.trees[i].predict(row) * share
	}
	return sum
}

// share returns the factor of each tree's value.
func (e *ensemble) share() float64 {
	if e.average {
		return 1 / float64(len(e.trees))
	}
	return 1
}

// splitSearch finds the best cut of a node. There is one implementation per criterion, and one
// instance per goroutine.
type splitSearch interface {
	// beginTree gets the drawn examples of a tree.
	beginTree(drawn []drawnItem, items []int32)
	// beginNode prepares a node. It returns an upper limit of the gain, and the absolute rounding
	// error of gains. known is the result of splitNode for this node; if it is not empty, the
	// features are filled already.
	beginNode(p *nodeItems, known *keptSums) (loss, noise float64)
	// fill prepares some features for search, each of which may be searched once, in any order.
	// Large nodes are filled fastest with all features in one call.
	fill(features []int)
	// search offers every cut between bins of a feature that leaves enough examples on both
	// sides, from low values to high ones. It returns false if all examples are in one bin.
	search(feature int, to *splitSelection) (varied bool)
	// sideSums sets the sums of both sides of the best cut, if known.
	sideSums(sides *[2]keptSums)
	// splitNode is called after the items of a node, whose features are all filled, were
	// partitioned by one of them; the first left items go left. It keeps data for the wanted
	// sides, or nothing if filling them again is faster.
	splitNode(by, left int, features []int, wanted [2]bool, sides *[2]keptSums)
}

// keptSums is the data that a splitSearch keeps for a child node.
type keptSums struct {
	sums     binMoments // nil if not kept
	isSorted bool       // its items are sorted in the search's ranks
	from     int        // first place in the ranks
	whole    itemMoment // sum of its items; zero if unknown
}

// filled reports whether features need not be filled.
func (k *keptSums) filled() bool { return k.sums != nil || k.isSorted }

// largeNode returns the number of items from which it is faster to visit all bins than only the
// ones with items.
func largeNode(most int) int { return max(8, most/2) }

// split is a cut of a node.
type split struct {
	gain         float64
	feature      int
	last, next   int     // last bin with items on the left, first on the right
	below, above float64 // predictions of both sides, only for fits with monotone signs
}

// splitSelection keeps the best split of a node. Among gains that differ only by rounding the first
// one wins.
type splitSelection struct {
	*growth
	best    split
	found   bool
	limit   float64 // minimum gain of the next best split
	loss    float64 // upper limit of the gain
	noise   float64 // see splitSearch.beginNode
	feature int     // feature whose cuts are offered
	bounds  valueLimits
}

// rounding is the relative difference up to which gains count as equal.
const rounding = 1e-12

// begin resets the selection for a node.
func (c *splitSelection) begin(bounds valueLimits, loss, noise float64) {
	c.found, c.limit, c.loss, c.noise, c.bounds = false, math.Inf(-1), loss, noise, bounds
}

// offer proposes a cut whose gain exceeds the limit: the last bin on its left, the first one with
// examples on its right, and the predictions of both sides, if signs need them. It reports whether
// the cut is taken.
func (c *splitSelection) offer(gain float64, last, next int, below, above float64) bool {
	if c.hasSigns {
		below, above = c.bounds.clip(c.restore(below)), c.bounds.clip(c.restore(above))
		if s := c.sign[c.feature]; s > 0 && below > above || s < 0 && below < above {
			return false
		}
	}
	c.limit, c.found = gain+rounding*gain+c.noise, true
	c.best = split{
		gain:    gain,
		feature: c.feature,
		last:    last,
		next:    next,
		below:   below,
		above:   above,
	}
	return true
}

// isPerfect reports whether the best split leaves no loss.
func (c *splitSelection) isPerfect() bool { return c.limit >= c.loss }

// pair is a weight and a weighted sum of targets.
type pair struct{ w, s float64 }

func (p *pair) add(o pair) { p.w += o.w; p.s += o.s }
func (p *pair) sub(o pair) { p.w -= o.w; p.s -= o.s }

// masked returns p if i < at, otherwise zero. It has no branch, which would be mispredicted half of
// the time.
func (p pair) masked(i, at int) pair {
	mask := uint64(int64(i-at) >> 63)
	return pair{
		w: math.Float64frombits(math.Float64bits(p.w) & mask),
		s: math.Float64frombits(math.Float64bits(p.s) & mask),
	}
}

// objective returns LightGBM's name of a criterion.
func (c Criterion) objective() string {
	switch c {
	case Squared:
		return "regression"
	case Absolute:
		return "regression_l1"
	}
	return string(c)
}
