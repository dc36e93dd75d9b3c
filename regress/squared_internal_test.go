package regress

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The best cut of a node does not depend on the search: with sorted items, with items that were
// kept sorted since a larger node was divided, or with bins. It does not depend on the previous
// node either.
func TestSquaredSearch_FormsAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const features = 3
	all := []int{0, 1, 2}
	d := &Dataset{Columns: make([][]float64, features), Features: make([]Feature, features)}
	for range 400 {
		for f, values := range []int{4, 60, 1000} {
			d.Columns[f] = append(d.Columns[f], float64(random.IntN(values)))
		}
		d.Target = append(d.Target, math.Round(8*random.NormFloat64())/8)
		d.Weight = append(d.Weight, []float64{1, 1, 0.25, 3}[random.IntN(4)])
	}
	d.Features[1].Monotone = 1
	for _, minimum := range []int{1, 3} {
		g := newGrowth(d, ForestOptions{MinLeaf: minimum, Criterion: Squared, Threads: 1})
		q := newSquaredSearch(g)
		for trial := range 600 {
			var items []int32
			drawn := make([]drawnItem, len(g.target))
			share := 2 + random.IntN(60)
			for row := range int32(len(g.target)) {
				if len(items) < maxBins-1 && random.IntN(share) == 0 {
					items = append(items, row)
					drawn[row] = drawnItem{y: g.y[row], w: g.weight[row] * 2, count: 2}
				}
			}
			by := random.IntN(features)
			last := g.bins.codes[by][random.IntN(len(g.target))]
			q.beginTree(drawn, items)
			isRight := func(row int32) bool { return g.bins.codes[by][row] > last }
			left := slices.DeleteFunc(slices.Clone(items), isRight)
			right := slices.DeleteFunc(slices.Clone(items), func(row int32) bool {
				return !isRight(row)
			})
			if len(left) < 2 || len(right) < 2 {
				continue
			}
			large := surveyed(drawn, items)
			q.large = maxBins
			q.beginNode(&large, &keptSums{})
			q.fill(all)
			q.below = itemMoment{}
			for i := range left {
				q.below.add(q.moments[left[i]])
			}
			var sides [2]keptSums
			q.sideSums(&sides)
			q.splitNode(by, len(left), all, [2]bool{true, true}, &sides)
			plots := [2]nodeItems{surveyed(drawn, left), surveyed(drawn, right)}
			var want [2]split
			var wantVaried [2][features]bool
			for side := range plots { // both before anything is sorted again
				want[side], wantVaried[side] = searchAll(g, q, &plots[side], &sides[side])
			}
			for side := range plots {
				for _, q.large = range []int{maxBins, 0} {
					if got, varied := searchAll(g, q, &plots[side], &keptSums{}); got != want[side] ||
						varied != wantVaried[side] {
						t.Fatalf("trial %d, minimum %d, %d items: search with large = %d found %+v (%v), want %+v (%v)",
							trial, minimum, len(plots[side].items), q.large, got, varied, want[side], wantVaried[side])
					}
				}
			}
		}
	}
}

// searchAll returns the best cut of three features, and which of them vary.
func searchAll(g *growth, q *squaredSearch, p *nodeItems, known *keptSums) (best split, varied [3]bool) {
	found := splitSelection{growth: g}
	loss, noise := q.beginNode(p, known)
	found.begin(valueLimits{math.Inf(-1), math.Inf(1)}, loss, noise)
	if !known.filled() {
		q.fill([]int{0, 1, 2})
	}
	for f := range varied {
		found.feature = f
		varied[f] = q.search(f, &found)
	}
	return found.best, varied
}

func surveyed(drawn []drawnItem, items []int32) nodeItems {
	p := nodeItems{items: items, all: drawn}
	p.sumUp()
	return p
}
