package regress

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A node's best cut must not depend on how many items it has: few are sorted,
// more are put into bins that are emptied again, many into sums of the node's own.
// Each way finds what the others do, whatever node came before.
func TestSquaredSearch_FindsTheSameEachWay(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const features = 3
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
			var items []item
			n := 2 + random.IntN(fewSquared-1)
			for _, row := range g.byY {
				if len(items) < n && random.IntN(400/n) == 0 {
					items = append(items, item{y: g.y[row], w: g.weight[row] * 2, row: row, count: 2})
				}
			}
			if len(items) < 2 {
				continue
			}
			p := survey(items)
			var found [3]contest
			var varied [3][features]bool
			for way := range found {
				q.large = []int{fewSquared + 1, fewSquared + 1, 0}[way]
				found[way] = newContest(g, limits{math.Inf(-1), math.Inf(1)}, q.enter(&p, nil))
				for f := range features {
					found[way].feature = f
					if way == 1 {
						varied[way][f] = q.searchSmall(f, &found[way])
						continue
					}
					q.fill([]int{f})
					varied[way][f] = q.search(f, &found[way])
				}
			}
			for way, other := range found[1:] {
				if other.best != found[0].best || other.found != found[0].found || varied[way+1] != varied[0] {
					t.Fatalf("trial %d, %d items, minimum %d: way %d finds %+v (%v), sorted %+v (%v)", trial, len(items), minimum, way+1, other.best, varied[way+1], found[0].best, varied[0])
				}
			}
		}
	}
}
