package regress

import (
	"math"
	"slices"
)

// item is one example in a node of a growing tree. The items of a node are
// neighbours in one slice, always in order of their targets.
type item struct {
	y, w  float64 // target (centred, see growth.center) and weight
	row   int32
	count int32 // how often the example was drawn
}

// growth is what all trees of a forest read and none writes.
type growth struct {
	bins    *binned
	target  []float64
	weight  []float64 // nil: all 1
	byY     []int32   // examples in order of their targets
	sign    []int     // monotone sign of each feature
	bound   bool      // some sign is not 0
	options ForestOptions
	centred // what splits are searched on
}

// grower grows one tree at a time and is owned by one goroutine.
type grower struct {
	*growth
	items, spare []item
	drawn        []int32
	order        []int
	search       searcher
	contest      contest
	nodes        []node
	leaves       []leaf
}

// limits are the bounds that monotone splits above a node put on its value.
type limits struct{ low, high float64 }

func (l limits) clip(value float64) float64 { return min(max(value, l.low), l.high) }

func (g *growth) newGrower() *grower {
	n := len(g.target)
	r := &grower{growth: g, items: make([]item, 0, n), spare: make([]item, 0, n), drawn: make([]int32, n)}
	if g.options.Criterion == Squared {
		r.search = &squaredSearch{minimum: g.options.MinLeaf}
	} else {
		r.search = &absoluteSearch{minimum: g.options.MinLeaf, wanted: g.bound}
	}
	return r
}

// tree grows tree number n of the forest.
func (g *grower) tree(n int) tree {
	s := stream(g.options.Seed).split(uint64(n))
	g.draw(s.split(0))
	g.nodes, g.leaves = g.nodes[:0], append(g.leaves[:0], leaf{})
	g.grow(g.items, 0, 0, s.split(1), limits{math.Inf(-1), math.Inf(1)}, 0)
	return tree{nodes: slices.Clone(g.nodes), leaves: slices.Clone(g.leaves)}
}

// draw fills items with the examples of a tree: all of them, or as many as
// there are, drawn with replacement.
func (g *grower) draw(s stream) {
	n := len(g.target)
	drawn := g.drawn
	clear(drawn)
	for i := range drawn {
		if g.options.Bootstrap {
			drawn[s.below(n)]++
		} else {
			drawn[i] = 1
		}
	}
	g.items = g.items[:0]
	for _, row := range g.byY {
		if drawn[row] == 0 {
			continue
		}
		w := float64(drawn[row])
		if g.weight != nil {
			w *= g.weight[row]
		}
		g.items = append(g.items, item{y: g.y[row], w: w, row: row, count: drawn[row]})
	}
}

// grow makes the subtree for items and returns how its parent names it. The
// left child of a node takes over the leaf number of the node, the right one
// gets the next number: LightGBM's way. Bit f of settled says that feature f is
// known to have one value only; features beyond 63 are asked again each time.
func (g *grower) grow(items []item, slot int32, depth int, s stream, bounds limits, settled uint64) int32 {
	whole, count := sum(items)
	value := bounds.clip(g.predict(items, whole))
	best, found := split{}, false
	if depth < g.options.MaxDepth && len(items) >= 2*g.options.MinLeaf && items[0].y < items[len(items)-1].y {
		best, settled, found = g.bestSplit(items, whole, s, bounds, settled)
	}
	if !found {
		g.leaves[slot] = leaf{value: value, weight: whole.w, count: count}
		return -1 - slot
	}
	at := len(g.nodes)
	g.nodes = append(g.nodes, node{feature: int32(best.feature), threshold: g.bins.cuts[best.feature][best.last],
		gain: g.restoreGain(best.gain), value: value, weight: whole.w, count: count})
	g.leaves = append(g.leaves, leaf{})
	middle := g.partition(items, best)
	below, above := g.childBounds(best, bounds)
	left := g.grow(items[:middle], slot, depth+1, s.split(1), below, settled)
	right := g.grow(items[middle:], int32(at)+1, depth+1, s.split(2), above, settled)
	g.nodes[at].left, g.nodes[at].right = left, right
	return int32(at)
}

// bestSplit tries the features in random order until as many as asked for had
// more than one value (as scikit-learn does), and returns the split that lowers
// the loss most. A split that gains nothing is still made: what lies below it
// may gain.
func (g *grower) bestSplit(items []item, whole pair, s stream, bounds limits, settled uint64) (split, uint64, bool) {
	features := len(g.bins.codes)
	g.order = g.order[:0]
	for f := range features {
		g.order = append(g.order, f)
	}
	s.shuffle(g.order)
	wanted := g.options.FeaturesPerSplit
	if wanted == 0 {
		wanted = features
	}
	g.contest = contest{growth: g.growth, bounds: bounds, tolerance: 1e-12 * g.search.enter(items, whole)}
	g.contest.best.gain = math.Inf(-1)
	for _, f := range g.order {
		if wanted == 0 {
			break
		}
		if settled>>f&1 != 0 {
			continue
		}
		g.contest.feature = f
		if g.search.search(items, g.bins.codes[f], len(g.bins.low[f]), &g.contest) {
			wanted--
		} else {
			settled |= 1 << f
		}
	}
	return g.contest.best, settled, g.contest.found
}

// restoreGain turns a gain back into the unit of the loss; it is never below 0 but for rounding.
func (g *growth) restoreGain(gain float64) float64 {
	if g.options.Criterion == Squared {
		gain /= g.scale
	}
	return min(max(gain/g.scale, 0), math.MaxFloat64)
}

// partition brings the items that go left to the front, keeping the order on
// both sides, and returns their number. Each item is written to both sides and
// counted on one, because a branch would be guessed wrong half of the time.
func (g *grower) partition(items []item, by split) int {
	codes, last := g.bins.codes[by.feature], uint8(by.last)
	spare := g.spare[:len(items)]
	left, right := 0, 0
	for i := range items {
		it := items[i]
		goes := 0
		if codes[it.row] <= last {
			goes = 1
		}
		items[left], spare[right] = it, it
		left += goes
		right += 1 - goes
	}
	copy(items[left:], spare[:right])
	return left
}

// childBounds keeps the subtrees of a monotone split on their sides of the
// middle between its two values, as XGBoost and LightGBM do.
func (g *grower) childBounds(by split, bounds limits) (left, right limits) {
	left, right = bounds, bounds
	switch middle := by.left/2 + by.right/2; g.sign[by.feature] {
	case 1:
		left.high, right.low = middle, middle
	case -1:
		left.low, right.high = middle, middle
	}
	return left, right
}

// sum returns weight and weighted sum of targets of items, and how many
// examples they are, as often as they were drawn.
func sum(items []item) (whole pair, count int) {
	for i := range items {
		whole.w += items[i].w
		whole.s += items[i].w * items[i].y
		count += int(items[i].count)
	}
	return whole, count
}

// predict returns what a node of these items predicts, in units of the target.
func (g *grower) predict(items []item, whole pair) float64 {
	if g.options.Criterion != Squared {
		return g.median(items, whole.w)
	}
	least, most := g.target[items[0].row], g.target[items[len(items)-1].row]
	return min(max(g.restore(whole.s/whole.w), least), most)
}

// median returns the smallest target at which the cumulated weight exceeds
// half, or the middle of two targets where it equals half.
func (g *grower) median(items []item, weight float64) float64 {
	below := 0.0
	for i := range items {
		if below+items[i].w > weight/2 {
			y := g.target[items[i].row]
			if i > 0 && below == weight/2 {
				return g.target[items[i-1].row]/2 + y/2
			}
			return y
		}
		below += items[i].w
	}
	return g.target[items[len(items)-1].row]
}
