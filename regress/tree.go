package regress

import (
	"fmt"
	"math"
)

// tree is a binary regression tree in the numbering of LightGBM's text format:
// node 0 is the root, a child c >= 0 is node c, a child c < 0 is leaf -1-c. A
// tree of one leaf has no nodes. There is always one leaf more than nodes.
type tree struct {
	nodes  []node
	leaves []leaf
}

// node sends a row left if its feature's value is <= threshold, else right.
type node struct {
	threshold   float64
	gain        float64 // by how much the split lowers the loss
	value       float64 // what the node would predict if it were a leaf
	weight      float64 // sum of the weights of its examples
	count       int     // number of examples, as often as they were drawn
	feature     int32
	left, right int32
}

type leaf struct {
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

// root names the root as a child.
func (t *tree) root() int32 {
	if len(t.nodes) == 0 {
		return -1
	}
	return 0
}

// depth is the most nodes on a way to a leaf. Parents may come after their
// children in a foreign file, so it walks.
func (t *tree) depth() int {
	type place struct {
		at    int32
		depth int
	}
	deepest, stack := 0, []place{{t.root(), 0}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		deepest = max(deepest, p.depth)
		if p.at >= 0 {
			n := &t.nodes[p.at]
			stack = append(stack, place{n.left, p.depth + 1}, place{n.right, p.depth + 1})
		}
	}
	return deepest
}

// check walks from the root and finds every node and leaf exactly once: no
// cycle, nothing used twice, nothing left over.
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

// ensemble predicts by trees: their sum, or their mean for a forest.
type ensemble struct {
	trees   []tree
	average bool
}

// predict adds up in the order and with the rounding of leaves (each tree's
// value times 1/trees), so that every form of a regressor gives the same number.
func (e *ensemble) predict(row []float64) float64 {
	share, sum := e.share(), 0.0
	for i := range e.trees {
		sum += e.trees[i].predict(row) * share
	}
	return sum
}

// share is what each tree's value is multiplied by.
func (e *ensemble) share() float64 {
	if e.average {
		return 1 / float64(len(e.trees))
	}
	return 1
}

// searcher finds the best cut of a node; there is one for each criterion, and
// one of it for each goroutine.
type searcher interface {
	// begin is told what a tree has drawn.
	begin(drawn []item, items []int32)
	// enter prepares a node, and returns what no split can gain more than and by how
	// much gains may differ by rounding, beyond a share of themselves. What divide
	// kept of it, or nothing, is the searcher's again; then its features are filled
	// already.
	enter(p *plot, known *kept) (loss, noise float64)
	// fill looks at the items of the node by some features, which are then
	// searched in any order, each once. Large nodes are best filled in one go.
	fill(features []int)
	// search offers every cut between bins of a feature that leaves enough
	// examples on both sides, from low values to high ones, and returns false
	// where all examples are in one bin.
	search(feature int, to *contest) (varied bool)
	// halve says what the sides of the best cut add up to, if it knows.
	halve(sides *[2]kept)
	// divide is called when the items of a node whose features are all filled
	// were divided by one of them and the first ones go left. It adds what it keeps of
	// the sides that are wanted, or nothing where it is better to fill anew.
	divide(by, left int, features []int, wanted [2]bool, sides *[2]kept)
}

// kept is what a searcher knows of a node before it is looked at.
type kept struct {
	sums   sums   // or nil
	ranked bool   // its items are sorted in the searcher's ranks
	from   int    // from this place on
	whole  moment // what its items add up to; or nothing
}

// filled says that anything is known.
func (k *kept) filled() bool { return k.sums != nil || k.ranked }

// largeNode is how many items a node needs to be worth a look at every bin, not
// only at those that have items, of features with as many bins at most.
func largeNode(most int) int { return max(8, most/2) }

// split is a cut of a node.
type split struct {
	gain         float64
	feature      int
	last, next   int     // the last bin with items that goes left, the first that goes right
	below, above float64 // predictions of both sides, only in a fit with signs
}

// contest holds the best split of a node so far. Among gains that differ only
// by rounding the first one offered wins.
type contest struct {
	*growth
	best    split
	found   bool
	limit   float64 // what a gain has to exceed
	loss    float64 // no split can gain more
	noise   float64 // see searcher.enter
	feature int     // whose cuts are offered
	bounds  limits
}

// rounding is the share of themselves by which gains may differ and be equal.
const rounding = 1e-12

// begin forgets the node before.
func (c *contest) begin(bounds limits, loss, noise float64) {
	c.found, c.limit, c.loss, c.noise, c.bounds = false, math.Inf(-1), loss, noise, bounds
}

// offer proposes a cut that gains more than the limit: the last bin on its left,
// the first one with examples on its right, and what both sides would predict,
// where signs need it. It says whether that is taken.
func (c *contest) offer(gain float64, last, next int, below, above float64) bool {
	if c.bound {
		below, above = c.bounds.clip(c.restore(below)), c.bounds.clip(c.restore(above))
		if s := c.sign[c.feature]; s > 0 && below > above || s < 0 && below < above {
			return false
		}
	}
	c.limit, c.found = gain+rounding*gain+c.noise, true
	c.best = split{gain: gain, feature: c.feature, last: last, next: next, below: below, above: above}
	return true
}

// won says that the best split leaves no loss.
func (c *contest) won() bool { return c.limit >= c.loss }

// pair is a weight and a weighted sum of targets.
type pair struct{ w, s float64 }

func (p *pair) add(o pair) { p.w += o.w; p.s += o.s }
func (p *pair) sub(o pair) { p.w -= o.w; p.s -= o.s }

// masked is p where i < at, else nothing. It has no branch: half of the time
// the processor would guess wrong.
func (p pair) masked(i, at int) pair {
	mask := uint64(int64(i-at) >> 63)
	return pair{math.Float64frombits(math.Float64bits(p.w) & mask), math.Float64frombits(math.Float64bits(p.s) & mask)}
}

// objective is LightGBM's name for a criterion.
func (c Criterion) objective() string {
	switch c {
	case Squared:
		return "regression"
	case Absolute:
		return "regression_l1"
	}
	return string(c)
}
