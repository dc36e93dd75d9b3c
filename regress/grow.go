package regress

import "math"

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
	// Splits are searched on (target - center) * scale: differences from the
	// center keep sums exact, the scale keeps squares of huge targets finite.
	center, scale float64
}

// split is the best cut of a node that was found.
type split struct {
	gain        float64
	feature     int
	last        int // bins up to this one go left
	left, right float64
}

// grower grows one tree at a time and is owned by one goroutine.
type grower struct {
	*growth
	items, spare []item
	codes        []uint8
	drawn        []int32
	order        []int
	found        []boundary
	search       searcher
	nodes        []node
	leaves       []leaf
}

// limits are the bounds that monotone splits above a node put on its value.
type limits struct{ low, high float64 }

func (l limits) clip(value float64) float64 { return min(max(value, l.low), l.high) }

func (g *growth) newGrower() *grower {
	n := len(g.target)
	r := &grower{growth: g, items: make([]item, 0, n), spare: make([]item, 0, n),
		codes: make([]uint8, n), drawn: make([]int32, n)}
	side := sides{minimum: g.options.MinLeaf, wanted: g.bound}
	if g.options.Criterion == Squared {
		r.search = &squaredSearch{sides: side}
	} else {
		r.search = &absoluteSearch{sides: side}
	}
	return r
}

// tree grows tree number n of the forest.
func (g *grower) tree(n int) tree {
	s := stream(g.options.Seed).split(uint64(n))
	g.draw(s.split(0))
	g.nodes, g.leaves = nil, make([]leaf, 1, 16)
	g.grow(g.items, 0, 0, s.split(1), limits{math.Inf(-1), math.Inf(1)})
	return tree{nodes: g.nodes, leaves: g.leaves}
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
		y := g.target[row]*g.scale - g.center*g.scale
		g.items = append(g.items, item{y: y, w: w, row: row, count: drawn[row]})
	}
}

// grow makes the subtree for items and returns how its parent names it. The
// left child of a node takes over the leaf number of the node, the right one
// gets the next number: LightGBM's way.
func (g *grower) grow(items []item, slot int32, depth int, s stream, bounds limits) int32 {
	value, weight, count := g.summary(items)
	value = bounds.clip(value)
	best, found := split{}, false
	if depth < g.options.MaxDepth && len(items) >= 2*g.options.MinLeaf && items[0].y < items[len(items)-1].y {
		best, found = g.bestSplit(items, s, bounds)
	}
	if !found {
		g.leaves[slot] = leaf{value: value, weight: weight, count: count}
		return -1 - slot
	}
	at := len(g.nodes)
	g.nodes = append(g.nodes, node{feature: int32(best.feature), threshold: g.bins.cuts[best.feature][best.last],
		gain: g.restoreGain(best.gain), value: value, weight: weight, count: count})
	g.leaves = append(g.leaves, leaf{})
	middle := g.partition(items, best)
	below, above := g.childBounds(best, bounds)
	left := g.grow(items[:middle], slot, depth+1, s.split(1), below)
	right := g.grow(items[middle:], int32(at)+1, depth+1, s.split(2), above)
	g.nodes[at].left, g.nodes[at].right = left, right
	return int32(at)
}

// bestSplit tries the features in random order until as many as asked for had
// more than one value (as scikit-learn does), and returns the split that lowers
// the loss most. Among gains that differ only by rounding the first found wins.
// A split that gains nothing is still made: what lies below it may gain.
func (g *grower) bestSplit(items []item, s stream, bounds limits) (best split, found bool) {
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
	tolerance := 1e-12 * g.search.enter(items)
	best.gain = math.Inf(-1)
	codes := g.codes[:len(items)]
	for _, f := range g.order {
		if wanted == 0 {
			break
		}
		if !g.load(f, items, codes) {
			continue
		}
		wanted--
		g.found = g.search.search(items, codes, g.found[:0])
		for _, cut := range g.found {
			if !(cut.gain > best.gain+tolerance) {
				continue
			}
			below, above := bounds.clip(g.restore(cut.below)), bounds.clip(g.restore(cut.above))
			if g.sign[f] > 0 && below > above || g.sign[f] < 0 && below < above {
				continue
			}
			best = split{gain: cut.gain, feature: f, last: g.bins.cut(f, cut.left, cut.right), left: below, right: above}
			found = true
		}
	}
	return best, found
}

// load fills codes with the bins of a feature and returns whether they differ.
func (g *grower) load(feature int, items []item, codes []uint8) bool {
	from := g.bins.codes[feature]
	first, differ := from[items[0].row], uint8(0)
	for i := range items {
		c := from[items[i].row]
		codes[i] = c
		differ |= c ^ first
	}
	return differ != 0
}

// restore turns a centred and scaled target back into its unit.
func (g *growth) restore(y float64) float64 { return y/g.scale + g.center }

// restoreGain does so for a gain, which is never below 0 but for rounding.
func (g *growth) restoreGain(gain float64) float64 {
	if g.options.Criterion == Squared {
		gain /= g.scale
	}
	return min(max(gain/g.scale, 0), math.MaxFloat64)
}

// partition brings the items that go left to the front, keeping the order on
// both sides, and returns their number.
func (g *grower) partition(items []item, by split) int {
	codes, last := g.bins.codes[by.feature], uint8(by.last)
	left := 0
	right := g.spare[:0]
	for _, it := range items {
		if codes[it.row] <= last {
			items[left] = it
			left++
		} else {
			right = append(right, it)
		}
	}
	copy(items[left:], right)
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

// summary returns what a node of these items predicts, in units of the target.
func (g *grower) summary(items []item) (value, weight float64, count int) {
	sum := 0.0
	for i := range items {
		weight += items[i].w
		sum += items[i].w * items[i].y
		count += int(items[i].count)
	}
	if g.options.Criterion == Squared {
		value = g.restore(sum / weight)
		return min(max(value, g.target[items[0].row]), g.target[items[len(items)-1].row]), weight, count
	}
	return g.median(items, weight), weight, count
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
