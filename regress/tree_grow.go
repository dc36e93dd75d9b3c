package regress

import (
	"math"
	"slices"
)

// drawnItem is one example that a tree has drawn. A node holds the numbers of its items in one
// slice, ordered by target.
type drawnItem struct {
	target float64
	y, w   float64 // target (centered, see growth.center) and weight
	count  int     // drawn examples, with repetitions
}

// growth is the shared, read-only input of all trees of a forest. Examples are numbered by their
// targets.
type growth struct {
	bins     *binned
	target   []float64
	weight   []float64 // nil: all 1
	number   []int32   // of each example: its place among the sorted targets
	sign     []int     // monotone sign of each feature
	hasSigns bool      // some sign is not 0
	options  ForestOptions
	centred  // targets for split searches
	units    // units of integer sums
}

// grower grows one tree at a time; it is owned by one goroutine.
type grower struct {
	*growth
	items       []drawnItem // by number
	rows, spare []int32
	order       []int
	search      splitSearch
	selection   splitSelection
	current     nodeItems
	large       int // minimum number of items of a node whose features are filled in one call
	nodes       []treeNode
	leaves      []treeLeaf
	sides       [maxDepth][2]keptSums // of the nodes above, by depth
}

// nodeItems is the node that is being split: its items and their sums.
type nodeItems struct {
	items    []int32
	all      []drawnItem // by number
	whole    pair        // weight and weighted sum of targets
	count    int         // number of drawn examples, with repetitions
	medianAt int         // item at which the cumulative weight reaches half
}

// valueLimits are the limits that monotone splits above a node put on its value.
type valueLimits struct{ low, high float64 }

func (l valueLimits) clip(value float64) float64 { return min(max(value, l.low), l.high) }

// heaviest returns the largest weight of an example.
func (g *growth) heaviest() float64 {
	if g.weight == nil {
		return 1
	}
	return slices.Max(g.weight)
}

func (g *growth) newGrower() *grower {
	n := len(g.target)
	r := &grower{
		growth:    g,
		rows:      make([]int32, 0, n),
		spare:     make([]int32, n),
		items:     make([]drawnItem, n),
		selection: splitSelection{growth: g},
		large:     largeNode(g.bins.maxBins()),
	}
	if g.options.Criterion == Squared {
		r.search, r.large = newSquaredSearch(g), 3
	} else {
		r.search = newAbsoluteSearch(g)
	}
	r.current.all = r.items
	return r
}

// tree grows tree n of the forest.
func (g *grower) tree(n int) tree {
	s := stream(g.options.Seed).split(uint64(n))
	g.draw(s.split(0))
	g.nodes, g.leaves = g.nodes[:0], append(g.leaves[:0], treeLeaf{})
	g.child(g.rows, &keptSums{}, 0, 0, s.split(1), valueLimits{math.Inf(-1), math.Inf(1)}, 0)
	return tree{nodes: slices.Clone(g.nodes), leaves: slices.Clone(g.leaves)}
}

// draw draws the examples of a tree: all of them, or as many with replacement. It writes each row
// and advances by 0 or 1, because a branch would be mispredicted often.
func (g *grower) draw(s stream) {
	n := len(g.target)
	drawn, items := g.items, g.rows[:n]
	clear(drawn)
	for i := range drawn {
		if g.options.Bootstrap {
			drawn[g.number[s.below(n)]].count++
		} else {
			drawn[i].count = 1
		}
	}
	taken := 0
	for row := range drawn {
		it := &drawn[row]
		it.target, it.y, it.w = g.target[row], g.y[row], float64(it.count)
		if g.weight != nil {
			it.w *= g.weight[row]
		}
		items[taken] = int32(row)
		taken += min(it.count, 1)
	}
	g.rows = items[:taken]
	g.search.beginTree(drawn, g.rows)
}

// child grows the subtree of some items and returns its child number. As in LightGBM the left child
// takes over the leaf number of the node, the right one gets the next number. Bit f of settled
// marks feature f as constant; features beyond 63 are tested again at each node. known is the data
// that the search kept.
func (g *grower) child(
	items []int32, known *keptSums, slot int32, depth int, s stream, bounds valueLimits,
	settled uint64,
) int32 {
	g.survey(items, known.whole)
	value := bounds.clip(g.predict())
	if g.canSplit(items, depth) {
		if settled, found := g.bestSplit(known, s, bounds, settled); found {
			return g.grow(value, slot, depth, s, bounds, settled)
		}
	}
	g.leaves[slot] = treeLeaf{value: value, weight: g.current.whole.w, count: g.current.count}
	return -1 - slot
}

// grow adds a node with the best split of the current items, and its subtrees.
func (g *grower) grow(
	value float64, slot int32, depth int, s stream, bounds valueLimits, settled uint64,
) int32 {
	items, best := g.current.items, &g.selection.best
	at, last := len(g.nodes), g.bins.cut(best.feature, best.last, best.next)
	g.nodes = append(g.nodes, treeNode{
		feature:   int32(best.feature),
		threshold: g.bins.cuts[best.feature][last],
		gain:      g.restoreGain(best.gain),
		value:     value,
		weight:    g.current.whole.w,
		count:     g.current.count,
	})
	g.leaves = append(g.leaves, treeLeaf{})
	below, above := g.childBounds(best, bounds)
	sides := &g.sides[depth]
	*sides = [2]keptSums{}
	g.search.sideSums(sides)
	middle := g.partition(items, best.feature, uint8(last))
	left, right := items[:middle], items[middle:]
	if g.competingFeatures() >= len(g.order) && len(items) >= g.large {
		g.search.splitNode(best.feature, middle, g.order, [2]bool{
			g.canSplit(left, depth+1), g.canSplit(right, depth+1),
		}, sides)
	}
	first := g.child(left, &sides[0], slot, depth+1, s.split(1), below, settled)
	second := g.child(right, &sides[1], int32(at)+1, depth+1, s.split(2), above, settled)
	g.nodes[at].left, g.nodes[at].right = first, second
	return int32(at)
}

// survey sums up a node; whole is its sum if known.
func (g *grower) survey(items []int32, whole itemMoment) {
	p := &g.current
	p.items = items
	if whole.w == 0 || !g.areSumsPrecise(items) {
		p.sumUp()
		return
	}
	p.whole.w, p.whole.s = g.weigh(whole), g.pull(whole)
	p.count = int(p.whole.w)
}

// areSumsPrecise reports whether the items differ enough for their integer sum to give the mean to
// a billionth of the difference. It is false for examples with weights, whose sum does not give
// their number.
func (g *grower) areSumsPrecise(items []int32) bool {
	return g.weight == nil && g.items[items[len(items)-1]].y-g.items[items[0]].y >= g.minSpread
}

// canSplit reports whether a node of these items may be split.
func (g *grower) canSplit(items []int32, depth int) bool {
	return depth < g.options.MaxDepth && len(items) >= 2*g.options.MinLeaf &&
		g.items[items[0]].y < g.items[items[len(items)-1]].y
}

// competingFeatures returns the number of features that compete for a split.
func (g *grower) competingFeatures() int {
	if g.options.FeaturesPerSplit == 0 {
		return len(g.bins.codes)
	}
	return g.options.FeaturesPerSplit
}

// bestSplit tries features in random order until enough of them had more than one value, as
// scikit-learn does, and selects the split with the largest gain. A split without gain is also
// made, because its children may gain.
func (g *grower) bestSplit(
	known *keptSums, s stream, bounds valueLimits, settled uint64,
) (uint64, bool) {
	g.shuffle(s, settled)
	loss, noise := g.search.beginNode(&g.current, known)
	g.selection.begin(bounds, loss, noise)
	wanted := g.competingFeatures()
	filled := known.filled()
	if !filled && wanted >= len(g.order) && len(g.current.items) >= g.large {
		g.search.fill(g.order)
		filled = true
	}
	for i, f := range g.order {
		if wanted == 0 || g.selection.isPerfect() {
			break
		}
		if !filled {
			g.search.fill(g.order[i : i+1])
		}
		g.selection.feature = f
		if g.search.search(f, &g.selection) {
			wanted--
		} else {
			settled |= 1 << f
		}
	}
	return settled, g.selection.found
}

// shuffle puts the features that are not settled into random order.
func (g *grower) shuffle(s stream, settled uint64) {
	g.order = g.order[:0]
	for f := range g.bins.codes {
		g.order = append(g.order, f)
	}
	s.shuffle(g.order)
	kept := 0
	for _, f := range g.order {
		if settled>>f&1 == 0 {
			g.order[kept] = f
			kept++
		}
	}
	g.order = g.order[:kept]
}

// restoreGain returns a gain in the unit of the loss, without negative rounding errors.
func (g *growth) restoreGain(gain float64) float64 {
	if g.options.Criterion == Squared {
		gain *= g.perScale
	}
	return min(max(gain*g.perScale, 0), math.MaxFloat64)
}

// partition moves the items that go left to the front, keeping the order on both sides, and returns
// their number. It writes each item to both sides and advances one, because a branch would be
// mispredicted half of the time.
func (g *grower) partition(items []int32, feature int, last uint8) int {
	codes := g.bins.codes[feature]
	spare := g.spare[:len(items)]
	left, right := 0, 0
	for _, row := range items {
		goes := 0
		if codes[row] <= last {
			goes = 1
		}
		items[left], spare[right] = row, row
		left += goes
		right += 1 - goes
	}
	copy(items[left:], spare[:right])
	return left
}

// childBounds limits the subtrees of a monotone split to their sides of the midpoint between both
// predictions, as XGBoost and LightGBM do.
func (g *grower) childBounds(by *split, bounds valueLimits) (left, right valueLimits) {
	left, right = bounds, bounds
	switch middle := by.below/2 + by.above/2; g.sign[by.feature] {
	case 1:
		left.high, right.low = middle, middle
	case -1:
		left.low, right.high = middle, middle
	}
	return left, right
}

// item returns item i in the order of targets.
func (p *nodeItems) item(i int) *drawnItem { return &p.all[p.items[i]] }

// sumUp sums the items of a node.
func (p *nodeItems) sumUp() {
	p.whole, p.count = pair{}, 0
	for i := range p.items {
		it := p.item(i)
		p.whole.w += it.w
		p.whole.s += it.w * it.y
		p.count += it.count
	}
}

// predict returns the prediction of the node in the unit of the target.
func (g *grower) predict() float64 {
	p := &g.current
	if g.options.Criterion != Squared {
		return g.median(p)
	}
	least, most := p.item(0).target, p.item(len(p.items)-1).target
	return min(max(g.restore(p.whole.s/p.whole.w), least), most)
}

// median returns the smallest target at which the cumulative weight exceeds half, or the midpoint
// of two targets where it equals half, and stores its place.
func (g *grower) median(p *nodeItems) float64 {
	below, half := 0.0, p.whole.w/2
	for i := range p.items {
		it := p.item(i)
		upTo := below + it.w
		if upTo > half {
			p.medianAt = i
			y := it.target
			if i > 0 && below == half {
				return p.item(i-1).target/2 + y/2
			}
			return y
		}
		below = upTo
	}
	p.medianAt = len(p.items) - 1
	return p.item(p.medianAt).target
}
