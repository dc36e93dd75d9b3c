package regress

import (
	"context"
	"math"
)

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
func (b *booster) bestCount(ctx context.Context, d *Dataset, done *progress) (int, error) {
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
