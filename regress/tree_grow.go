package regress

import (
	"math"
	"slices"
)

// item is one example that a tree has drawn. A node holds the numbers of its
// items, neighbours in one slice, always in order of their targets.
// What is asked of one is in one line of the cache.
type item struct {
	target float64
	y, w   float64 // target (centred, see growth.center) and weight
	count  int     // how often the example was drawn
}

// growth is what all trees of a forest read and none writes. Examples are numbered
// in order of their targets.
type growth struct {
	bins    *binned
	target  []float64
	weight  []float64 // nil: all 1
	number  []int32   // of each example: its place among the targets in order
	sign    []int     // monotone sign of each feature
	bound   bool      // some sign is not 0
	options ForestOptions
	centred // what splits are searched on
	units   // of whole numbers
}

// grower grows one tree at a time and is owned by one goroutine.
type grower struct {
	*growth
	drawn        []item // by number
	items, spare []int32
	order        []int
	search       searcher
	contest      contest
	plot         plot
	large        int // items of a node whose features are best filled in one go
	nodes        []node
	leaves       []leaf
	sides        [maxDepth][2]kept // of the nodes above, by depth
}

// plot is a node that is looked at: its items and what they sum up to.
type plot struct {
	items  []int32
	drawn  []item // by number
	whole  pair   // weight and weighted sum of targets
	count  int    // examples, as often as they were drawn
	middle int    // the item at which the weight reaches half
}

// limits are the bounds that monotone splits above a node put on its value.
type limits struct{ low, high float64 }

func (l limits) clip(value float64) float64 { return min(max(value, l.low), l.high) }

// heaviest is the largest weight of an example.
func (g *growth) heaviest() float64 {
	if g.weight == nil {
		return 1
	}
	return slices.Max(g.weight)
}

func (g *growth) newGrower() *grower {
	n := len(g.target)
	r := &grower{
		growth:  g,
		items:   make([]int32, 0, n),
		spare:   make([]int32, n),
		drawn:   make([]item, n),
		contest: contest{growth: g},
		large:   largeNode(g.bins.most()),
	}
	if g.options.Criterion == Squared {
		r.search, r.large = newSquaredSearch(g), 3
	} else {
		r.search = newAbsoluteSearch(g)
	}
	r.plot.drawn = r.drawn
	return r
}

// tree grows tree number n of the forest.
func (g *grower) tree(n int) tree {
	s := stream(g.options.Seed).split(uint64(n))
	g.draw(s.split(0))
	g.nodes, g.leaves = g.nodes[:0], append(g.leaves[:0], leaf{})
	g.child(g.items, &kept{}, 0, 0, s.split(1), limits{math.Inf(-1), math.Inf(1)}, 0)
	return tree{nodes: slices.Clone(g.nodes), leaves: slices.Clone(g.leaves)}
}

// draw fills items with the examples of a tree: all of them, or as many as
// there are, drawn with replacement. Each is written and the drawn ones are
// counted, because a branch would often be guessed wrong.
func (g *grower) draw(s stream) {
	n := len(g.target)
	drawn, items := g.drawn, g.items[:n]
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
	g.items = items[:taken]
	g.search.begin(drawn, g.items)
}

// child makes the subtree for items and returns how its parent names it. The
// left child of a node takes over the leaf number of the node, the right one
// gets the next number: LightGBM's way. Bit f of settled says that feature f is
// known to have one value only; features beyond 63 are asked again each time.
// Known is what the searcher kept of the items, if anything.
func (g *grower) child(
	items []int32, known *kept, slot int32, depth int, s stream, bounds limits, settled uint64,
) int32 {
	g.look(items, known.whole)
	value := bounds.clip(g.predict())
	if g.splits(items, depth) {
		if settled, found := g.bestSplit(known, s, bounds, settled); found {
			return g.grow(value, slot, depth, s, bounds, settled)
		}
	}
	g.leaves[slot] = leaf{value: value, weight: g.plot.whole.w, count: g.plot.count}
	return -1 - slot
}

// grow makes a node of the plot by the best split, and what is below it.
func (g *grower) grow(
	value float64, slot int32, depth int, s stream, bounds limits, settled uint64,
) int32 {
	items, best := g.plot.items, &g.contest.best
	at, last := len(g.nodes), g.bins.cut(best.feature, best.last, best.next)
	g.nodes = append(g.nodes, node{
		feature:   int32(best.feature),
		threshold: g.bins.cuts[best.feature][last],
		gain:      g.restoreGain(best.gain),
		value:     value,
		weight:    g.plot.whole.w,
		count:     g.plot.count,
	})
	g.leaves = append(g.leaves, leaf{})
	below, above := g.childBounds(best, bounds)
	sides := &g.sides[depth]
	*sides = [2]kept{}
	g.search.halve(sides)
	middle := g.partition(items, best.feature, uint8(last))
	left, right := items[:middle], items[middle:]
	if g.wanted() >= len(g.order) && len(items) >= g.large {
		g.search.divide(best.feature, middle, g.order, [2]bool{
			g.splits(left, depth+1), g.splits(right, depth+1),
		}, sides)
	}
	first := g.child(left, &sides[0], slot, depth+1, s.split(1), below, settled)
	second := g.child(right, &sides[1], int32(at)+1, depth+1, s.split(2), above, settled)
	g.nodes[at].left, g.nodes[at].right = first, second
	return int32(at)
}

// look surveys a node, of which it may be known already what it adds up to.
func (g *grower) look(items []int32, whole moment) {
	p := &g.plot
	p.items = items
	if whole.w == 0 || !g.tells(items) {
		p.survey()
		return
	}
	p.whole.w, p.whole.s = g.weigh(whole), g.pull(whole)
	p.count = int(p.whole.w)
}

// tells says that items lie far enough apart for what they add up to, in whole
// units, to tell their mean to a billionth of that. Where examples have weights
// that does not tell how many they are.
func (g *grower) tells(items []int32) bool {
	return g.weight == nil && g.drawn[items[len(items)-1]].y-g.drawn[items[0]].y >= g.fine
}

// splits says whether a node of these items may be split at all.
func (g *grower) splits(items []int32, depth int) bool {
	return depth < g.options.MaxDepth && len(items) >= 2*g.options.MinLeaf &&
		g.drawn[items[0]].y < g.drawn[items[len(items)-1]].y
}

// wanted is how many features compete for a split.
func (g *grower) wanted() int {
	if g.options.FeaturesPerSplit == 0 {
		return len(g.bins.codes)
	}
	return g.options.FeaturesPerSplit
}

// bestSplit tries the features in random order until as many as asked for had
// more than one value (as scikit-learn does); the split that lowers the loss most
// wins the contest. A split that gains nothing is still made: what lies below it
// may gain.
func (g *grower) bestSplit(known *kept, s stream, bounds limits, settled uint64) (uint64, bool) {
	g.shuffle(s, settled)
	loss, noise := g.search.enter(&g.plot, known)
	g.contest.begin(bounds, loss, noise)
	wanted := g.wanted()
	filled := known.filled()
	if !filled && wanted >= len(g.order) && len(g.plot.items) >= g.large {
		g.search.fill(g.order)
		filled = true
	}
	for i, f := range g.order {
		if wanted == 0 || g.contest.won() {
			break
		}
		if !filled {
			g.search.fill(g.order[i : i+1])
		}
		g.contest.feature = f
		if g.search.search(f, &g.contest) {
			wanted--
		} else {
			settled |= 1 << f
		}
	}
	return settled, g.contest.found
}

// shuffle brings the features that are not settled into random order.
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

// restoreGain turns a gain back into the unit of the loss; it is never below 0 but for rounding.
func (g *growth) restoreGain(gain float64) float64 {
	if g.options.Criterion == Squared {
		gain *= g.perScale
	}
	return min(max(gain*g.perScale, 0), math.MaxFloat64)
}

// partition brings the items that go left to the front, keeping the order on
// both sides, and returns their number. Each item is written to both sides and
// counted on one, because a branch would be guessed wrong half of the time.
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

// childBounds keeps the subtrees of a monotone split on their sides of the
// middle between its two values, as XGBoost and LightGBM do.
func (g *grower) childBounds(by *split, bounds limits) (left, right limits) {
	left, right = bounds, bounds
	switch middle := by.below/2 + by.above/2; g.sign[by.feature] {
	case 1:
		left.high, right.low = middle, middle
	case -1:
		left.low, right.high = middle, middle
	}
	return left, right
}

// item returns one of the items, in order of their targets.
func (p *plot) item(i int) *item { return &p.drawn[p.items[i]] }

// survey sums up the items of a node.
func (p *plot) survey() {
	p.whole, p.count = pair{}, 0
	for i := range p.items {
		it := p.item(i)
		p.whole.w += it.w
		p.whole.s += it.w * it.y
		p.count += it.count
	}
}

// predict returns what the node predicts, in units of the target.
func (g *grower) predict() float64 {
	p := &g.plot
	if g.options.Criterion != Squared {
		return g.median(p)
	}
	least, most := p.item(0).target, p.item(len(p.items)-1).target
	return min(max(g.restore(p.whole.s/p.whole.w), least), most)
}

// median returns the smallest target at which the cumulated weight exceeds
// half, or the middle of two targets where it equals half, and notes the place.
func (g *grower) median(p *plot) float64 {
	below, half := 0.0, p.whole.w/2
	for i := range p.items {
		it := p.item(i)
		upTo := below + it.w
		if upTo > half {
			p.middle = i
			y := it.target
			if i > 0 && below == half {
				return p.item(i-1).target/2 + y/2
			}
			return y
		}
		below = upTo
	}
	p.middle = len(p.items) - 1
	return p.item(p.middle).target
}
