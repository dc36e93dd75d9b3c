package regress

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// loss is what boosting minimises, as a function of a residual r = y - score.
type loss struct {
	criterion Criterion
	level     float64
	delta     float64 // Huber: residuals up to it count by their squares
}

// weightedResidual is a residual and its weight.
type weightedResidual struct{ r, w float64 }

// enter prepares a tree. Huber's delta is the quantile of |r| at its level
// (Friedman 2001, algorithm 4).
func (l *loss) enter(all []weightedResidual) {
	if l.criterion == Huber {
		for i := range all {
			all[i].r = math.Abs(all[i].r)
		}
		l.delta = quantile(all, l.level)
	}
}

// pull is the negative gradient: where and how hard an example pulls its score.
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

// value is the number that, taken from all residuals of a leaf, minimises the
// loss; for Huber it is one step from the median towards it (Friedman 2001,
// equation 33). The order of the leaf is lost.
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

// cost is the loss of an example that was not learnt from. Huber's delta shrinks
// from tree to tree; what is compared between trees is the absolute residual.
func (l *loss) cost(r float64) float64 {
	switch l.criterion {
	case Squared:
		return r * r
	case Quantile:
		return max(l.level*r, (l.level-1)*r)
	}
	return math.Abs(r)
}

// quantile returns the smallest r at which the cumulated weight exceeds a level
// of the whole, or the middle of two where it equals that: for 0.5 the median.
// It selects (Hoare 1961) and leaves the numbers in another order.
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

// between is r number i or, where two share the quantile, its middle with the
// largest before it.
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

// divide brings what is less than a pivot to the front and what is more to the
// end, and returns where the pivots begin and end (Dijkstra 1976).
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

// stoppingFolds is how many shares settings are dealt into: up to onlyOneFrom
// examples each is held out once, from there on one is, which is enough to see
// where a loss turns.
const (
	stoppingFolds = 5
	onlyOneFrom   = 5000
)

// bestCount returns the number of trees at which the loss on settings that were
// not learnt from is least. All shares advance together, a tree at a time, until
// there was none better for as many trees as Patience says.
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

// holdOuts returns the examples of each share of the settings, nil where there
// are not two settings.
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

// without returns the numbers 0 to n-1 but for some, all in order.
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

// cost sums up the loss of examples.
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
