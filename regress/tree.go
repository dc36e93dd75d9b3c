package regress

import "fmt"

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
