package regress

import (
	"math"
	"slices"
)

// booster grows trees one after another, each on the residuals of the previous ones.
type booster struct {
	options BoostingOptions
	loss    loss
	bins    *binned
	target  []float64
	weight  []float64 // nil: all 1
	sign    []int     // monotone sign of each feature
	centred
	start      float64   // prediction before the first tree
	members    []int32   // examples to learn from, in order
	residual   []float64 // of all examples
	grownTrees int       // number of trees

	pulls, weights     []int64 // packed, of all examples
	pulling, weighting packing
	rows, spare        []int32 // of the current tree, by leaf
	isDrawn            []bool  // whether an example is one of them
	features           []int   // of the current tree, in order
	growing            []growingLeaf
	nodes              []treeNode
	lastBins           []uint8 // of each node: the last bin that goes left
	idle, parts        []*pullHistogram
	scratch            [][]weightedResidual // by thread
}

func newBooster(d *Dataset, o BoostingOptions) *booster {
	bins := bin(d.Columns, o.Threads)
	bins.rows = bins.byExample(o.Threads)
	var signs []int
	for _, feature := range d.Features {
		signs = append(signs, feature.Monotone)
	}
	return assemble(bins, d.Target, d.Weight, signs, o)
}

// assemble returns a booster of binned examples.
func assemble(bins *binned, target, weight []float64, signs []int, o BoostingOptions) *booster {
	b := &booster{
		options: o,
		loss:    loss{criterion: o.Criterion, level: o.Level},
		bins:    bins,
		weight:  weight,
		sign:    signs,
	}
	b.target = o.Transform.apply(target)
	b.centred = center(b.target, sortedOrder(b.target))
	all := make([]int32, len(b.target))
	for i := range all {
		all[i] = int32(i)
	}
	b.scratch = make([][]weightedResidual, o.Threads)
	b.learn(all)
	return b
}

// copy returns a booster of the same examples without trees, which learns from some of them.
func (b *booster) copy(members []int32) *booster {
	c := &booster{options: b.options, loss: b.loss, bins: b.bins, target: b.target,
		weight: b.weight, sign: b.sign, centred: b.centred, scratch: make([][]weightedResidual,
			b.options.Threads)}
	c.learn(members)
	return c
}

// learn allocates buffers and finds the best constant.
func (b *booster) learn(members []int32) {
	n := len(b.target)
	b.members = members
	b.residual = slices.Clone(b.y)
	b.rows, b.spare, b.isDrawn = make([]int32, 0, n), make([]int32, n), make([]bool, n)
	b.pulls = make([]int64, n)
	b.loss.enter(b.masses(0, members))
	b.start = b.loss.value(b.masses(0, members))
	for i := range b.residual {
		b.residual[i] -= b.start
	}
	if b.weight == nil {
		return
	}
	b.weights = make([]int64, n)
	b.weighting = newPacking(n, slices.Max(b.weight))
	for i, w := range b.weight {
		b.weights[i] = b.weighting.pack(w)
	}
}

// constant reports whether all targets are equal: one leaf suffices.
func (b *booster) constant() bool {
	return slices.Min(b.target) == slices.Max(b.target)
}

// masses collects the residuals of some examples in the buffer of a thread.
func (b *booster) masses(thread int, rows []int32) []weightedResidual {
	all := b.scratch[thread][:0]
	for _, row := range rows {
		w := 1.0
		if b.weight != nil {
			w = b.weight[row]
		}
		all = append(all, weightedResidual{b.residual[row], w})
	}
	b.scratch[thread] = all
	return all
}

func (b *booster) weightOf(rows []int32) float64 {
	if b.weight == nil {
		return float64(len(rows))
	}
	sum := 0.0
	for _, row := range rows {
		sum += b.weight[row]
	}
	return sum
}

// next grows one more tree.
func (b *booster) next() tree {
	s := stream(b.options.Seed).split(uint64(b.grownTrees))
	b.draw(s)
	if b.loss.criterion == Huber {
		b.loss.enter(b.masses(0, b.rows))
	}
	b.pull()
	b.grow()
	t := b.finish()
	b.grownTrees++
	return t
}

// draw draws the examples and the features of a tree.
func (b *booster) draw(s stream) {
	b.rows = append(b.rows[:0], b.members...)
	if b.options.RowShare < 1 {
		chosen := s.split(0)
		chosen.choose(b.rows, share(len(b.rows), b.options.RowShare))
		b.rows = b.rows[:share(len(b.rows), b.options.RowShare)]
		slices.Sort(b.rows)
	}
	clear(b.isDrawn)
	for _, row := range b.rows {
		b.isDrawn[row] = true
	}
	b.features = b.features[:0]
	for f := range b.sign {
		b.features = append(b.features, f)
	}
	if b.options.FeatureShare < 1 {
		chosen := s.split(1)
		chosen.shuffle(b.features)
		b.features = b.features[:share(len(b.features), b.options.FeatureShare)]
		slices.Sort(b.features)
	}
}

// share returns a share of n, at least 1.
func share(n int, of float64) int { return max(1, int(math.Round(float64(n)*of))) }

// pull packs the gradient of each example of the tree.
func (b *booster) pull() {
	const least = 1 << 14
	most := make([]float64, b.options.Threads)
	parallel(b.options.Threads, len(b.rows), least, func(run, from, to int) {
		m := 0.0
		for _, row := range b.rows[from:to] {
			m = max(m, math.Abs(b.pullOf(row)))
		}
		most[run] = m
	})
	b.pulling = newPacking(len(b.target), slices.Max(most))
	parallel(b.options.Threads, len(b.rows), least, func(_, from, to int) {
		for _, row := range b.rows[from:to] {
			b.pulls[row] = b.pulling.pack(b.pullOf(row))
		}
	})
}

func (b *booster) pullOf(row int32) float64 {
	pull := b.loss.pull(b.residual[row])
	if b.weight != nil {
		pull *= b.weight[row]
	}
	return pull
}

// finish sets the values of the leaves, subtracts them from the residuals of all examples, and
// returns the tree.
func (b *booster) finish() tree {
	t := tree{nodes: slices.Clone(b.nodes), leaves: make([]treeLeaf, len(b.growing))}
	steps := make([]float64, len(b.growing))
	parallel(b.options.Threads, len(b.growing), b.leavesPerThread(), func(run, from, to int) {
		for k := from; k < to; k++ {
			s := &b.growing[k]
			steps[k] = b.options.LearningRate * s.bounds.clip(b.loss.value(b.masses(run, s.rows)))
			for _, row := range s.rows {
				b.residual[row] -= steps[k]
			}
			t.leaves[k] = treeLeaf{
				value:  b.restoreStep(steps[k]),
				weight: b.weightOf(s.rows),
				count:  len(s.rows),
			}
		}
	})
	if len(b.rows) < len(b.residual) {
		parallel(b.options.Threads, len(b.residual), 1<<13, func(_, from, to int) {
			for row := from; row < to; row++ {
				if !b.isDrawn[row] {
					b.residual[row] -= steps[b.leafOf(row)]
				}
			}
		})
	}
	t.sumUp()
	return t
}

// leavesPerThread returns the number of leaves with 2^13 examples or more.
func (b *booster) leavesPerThread() int {
	return max(1, len(b.growing)<<13/max(len(b.rows), 1))
}

// restoreStep returns a leaf's value in the unit of the target. The first tree includes the start,
// for which the file has no other place.
func (b *booster) restoreStep(step float64) float64 {
	value := step / b.scale
	if b.grownTrees == 0 {
		value = b.restore(b.start + step)
	}
	return min(max(value, -math.MaxFloat64), math.MaxFloat64)
}

// leafOf returns the leaf of an example, by the bins of its features.
func (b *booster) leafOf(row int) int32 {
	if len(b.nodes) == 0 {
		return 0
	}
	codes := b.bins.row(int32(row))
	for at := int32(0); ; {
		n, last := &b.nodes[at], b.lastBins[at]
		if at = n.right; codes[n.feature] <= last {
			at = n.left
		}
		if at < 0 {
			return -1 - at
		}
	}
}

// sumUp sets weights, counts and values of nodes from their subtrees: a node's value is the mean of
// its leaves. Children come after their parents.
func (t *tree) sumUp() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		n.weight, n.count, n.value = 0, 0, 0
		var weight, value [2]float64
		for side, child := range [2]int32{n.left, n.right} {
			count := 0
			if child < 0 {
				l := &t.leaves[-1-child]
				weight[side], value[side], count = l.weight, l.value, l.count
			} else {
				c := &t.nodes[child]
				weight[side], value[side], count = c.weight, c.value, c.count
			}
			n.weight += weight[side]
			n.count += count
		}
		n.value = weight[0]/n.weight*value[0] + weight[1]/n.weight*value[1]
	}
}
