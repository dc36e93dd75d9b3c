package regress

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// loss is the loss of boosting as a function of a residual r = y - score.
type loss struct {
	criterion Criterion
	level     float64
	delta     float64 // Huber: residuals up to delta have squared loss
}

// weightedResidual is a residual and its weight.
type weightedResidual struct{ r, w float64 }

// enter prepares a tree. Huber's delta is the quantile of |r| at its level (Friedman 2001,
// algorithm 4).
func (l *loss) enter(all []weightedResidual) {
	if l.criterion == Huber {
		for i := range all {
			all[i].r = math.Abs(all[i].r)
		}
		l.delta = quantile(all, l.level)
	}
}

// pull returns the negative gradient.
func (l *loss) pull(r float64) float64 {
	switch l.criterion {
	case Squared:
		return r
	case Huber:
		return min(max(r, -l.delta), l.delta)
	case Quantile:
		if r < 0 {
			return l.level - 1
		}
		return l.level
	}
	switch {
	case r > 0:
		return 1
	case r < 0:
		return -1
	}
	return 0
}

// value returns the number whose subtraction from all residuals of a leaf minimizes the loss; for
// Huber one step from the median towards it (Friedman 2001, equation 33). It changes the order of
// leaf.
func (l *loss) value(leaf []weightedResidual) float64 {
	switch l.criterion {
	case Squared:
		weight, sum := 0.0, 0.0
		for _, m := range leaf {
			weight += m.w
			sum += m.w * m.r
		}
		return sum / weight
	case Quantile:
		return quantile(leaf, l.level)
	}
	median := quantile(leaf, 0.5)
	if l.criterion == Absolute {
		return median
	}
	weight, sum := 0.0, 0.0
	for _, m := range leaf {
		weight += m.w
		sum += m.w * min(max(m.r-median, -l.delta), l.delta)
	}
	return median + sum/weight
}

// cost returns the loss of a held-out example. Huber's delta shrinks from tree to tree, so the
// absolute residual is compared instead.
func (l *loss) cost(r float64) float64 {
	switch l.criterion {
	case Squared:
		return r * r
	case Quantile:
		return max(l.level*r, (l.level-1)*r)
	}
	return math.Abs(r)
}

// quantile returns the smallest r at which the cumulative weight exceeds a level of the total, or
// the midpoint of two where it equals that: for 0.5 the median. It selects (Hoare 1961) and changes
// the order of the numbers.
func quantile(of []weightedResidual, level float64) float64 {
	whole := 0.0
	for _, m := range of {
		whole += m.w
	}
	want, below := level*whole, 0.0 // below: the weight of what lies before from
	from, to := 0, len(of)
	for to-from > 16 {
		less, more := divide(of[from:to])
		under, equal := 0.0, 0.0
		for _, m := range of[from : from+less] {
			under += m.w
		}
		for _, m := range of[from+less : from+more] {
			equal += m.w
		}
		switch {
		case below+under > want:
			to = from + less
		case below+under+equal > want:
			return between(of, from+less, below+under == want)
		default:
			from, below = from+more, below+under+equal
		}
	}
	slices.SortFunc(of[from:to], func(a, b weightedResidual) int { return cmp.Compare(a.r, b.r) })
	for i := from; i < to; i++ {
		if below+of[i].w > want {
			return between(of, i, below == want)
		}
		below += of[i].w
	}
	return of[max(from, to-1)%len(of)].r
}

// between returns r of element i or, if two share the quantile, the midpoint with the largest
// before it.
func between(of []weightedResidual, i int, shared bool) float64 {
	if !shared || i == 0 {
		return of[i].r
	}
	before := of[0].r
	for _, m := range of[:i] {
		before = max(before, m.r)
	}
	return before/2 + of[i].r/2
}

// divide partitions the numbers into less than, equal to and more than a pivot, and returns where
// the equal ones begin and end (Dijkstra 1976).
func divide(of []weightedResidual) (less, more int) {
	a, b, c := of[0].r, of[len(of)/2].r, of[len(of)-1].r
	pivot := max(min(a, b), min(max(a, b), c))
	more = len(of)
	for i := 0; i < more; {
		switch r := of[i].r; {
		case r < pivot:
			of[i], of[less] = of[less], of[i]
			less++
			i++
		case r > pivot:
			more--
			of[i], of[more] = of[more], of[i]
		default:
			i++
		}
	}
	return less, more
}

// stoppingFolds is the number of folds of configurations. Below onlyOneFrom examples each fold is
// held out once; from there on one fold suffices to find the minimum of the loss.
const (
	stoppingFolds = 5
	onlyOneFrom   = 5000
)

// bestCount returns the number of trees with the smallest loss on held-out configurations. All
// folds advance together, a tree at a time, until there was no better number for Patience trees.
func (b *booster) bestCount(ctx context.Context, d *Dataset, done *progressCounter) (int, error) {
	held := d.holdOuts(b.options.Seed)
	if held == nil {
		return b.options.Trees, nil
	}
	boosters := make([]*booster, len(held))
	for i, rows := range held {
		boosters[i] = b.copy(without(rows, len(b.target)))
	}
	best, least := 0, math.Inf(1)
	for count := 0; count <= b.options.Trees && count-best <= b.options.Patience; count++ {
		cost := 0.0
		for i, c := range boosters {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			if count > 0 {
				c.next()
			}
			cost += c.cost(held[i])
		}
		if count > 0 {
			done.add(1)
		}
		if cost < least {
			best, least = count, cost
		}
	}
	return max(best, 1), nil
}

// holdOuts returns the examples of each fold; nil for fewer than two configurations.
func (d *Dataset) holdOuts(seed uint64) [][]int32 {
	folds := Folds(d.Group, stoppingFolds, uint64(stream(seed).split(foldBranch+1)))
	if folds == nil {
		return nil
	}
	held := make([][]int32, foldCount(folds))
	for i, fold := range folds {
		held[fold] = append(held[fold], int32(i))
	}
	if d.Len() >= onlyOneFrom {
		held = held[:1]
	}
	return held
}

// without returns the numbers 0 to n-1 except some, all in order.
func without(some []int32, n int) []int32 {
	others := make([]int32, 0, n-len(some))
	for i := range int32(n) {
		if len(some) > 0 && some[0] == i {
			some = some[1:]
		} else {
			others = append(others, i)
		}
	}
	return others
}

// cost sums the loss of examples.
func (b *booster) cost(rows []int32) float64 {
	sum := 0.0
	for _, row := range rows {
		cost := b.loss.cost(b.residual[row])
		if b.weight != nil {
			cost *= b.weight[row]
		}
		sum += cost
	}
	return sum
}
