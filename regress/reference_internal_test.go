package regress

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reference grows a tree by brute force: every feature, every threshold between
// two values that occur, medians and means from sorted copies. It shares with
// grower only the random order of features and the rule for ties.
type reference struct {
	d       *Dataset
	o       ForestOptions
	cuts    [][]float64
	text    []string
	minimum int
}

func (r *reference) grow(rows []int, depth int, s stream) {
	value, loss := r.fit(rows)
	feature, threshold, found := 0, 0.0, false
	if depth < r.o.MaxDepth && loss > 0 {
		feature, threshold, found = r.best(rows, loss, s)
	}
	indent := fmt.Sprintf("%*s", 2*depth, "")
	if !found {
		r.text = append(r.text, fmt.Sprintf("%sleaf %.9g of %d", indent, value, len(rows)))
		return
	}
	r.text = append(r.text, fmt.Sprintf("%s%d <= %g, else %.9g", indent, feature, threshold, value))
	left, right := r.divide(rows, feature, threshold)
	r.grow(left, depth+1, s.split(1))
	r.grow(right, depth+1, s.split(2))
}

func (r *reference) best(
	rows []int, loss float64, s stream,
) (feature int, threshold float64, found bool) {
	order := make([]int, len(r.d.Columns))
	for f := range order {
		order[f] = f
	}
	s.shuffle(order)
	best := math.Inf(-1)
	for _, f := range order {
		var values []float64
		for _, row := range rows {
			values = append(values, r.d.Columns[f][row])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := 1; i < len(values); i++ {
			cut := r.nearest(f, values[i-1], values[i])
			left, right := r.divide(rows, f, cut)
			if len(left) < r.minimum || len(right) < r.minimum {
				continue
			}
			_, a := r.fit(left)
			_, b := r.fit(right)
			if gain := loss - a - b; gain > best+1e-12*loss {
				best, feature, threshold, found = gain, f, cut, true
			}
		}
	}
	return feature, threshold, found
}

// nearest returns a cut between two values: of the midpoints between neighbouring values of all
// examples, the one nearest to their middle.
func (r *reference) nearest(f int, low, high float64) float64 {
	best := math.Inf(1)
	for _, cut := range r.cuts[f] {
		if cut > low && cut < high && math.Abs(cut-(low+high)/2) < math.Abs(best-(low+high)/2) {
			best = cut
		}
	}
	return best
}

func (r *reference) divide(rows []int, f int, cut float64) (left, right []int) {
	for _, row := range rows {
		if r.d.Columns[f][row] <= cut {
			left = append(left, row)
		} else {
			right = append(right, row)
		}
	}
	return left, right
}

// fit returns the weighted mean or median of the targets and the loss about it.
func (r *reference) fit(rows []int) (value, loss float64) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b int) int {
		if r.d.Target[a] < r.d.Target[b] {
			return -1
		}
		return 1
	})
	total, sum := 0.0, 0.0
	for _, row := range sorted {
		total += r.d.Weight[row]
		sum += r.d.Weight[row] * r.d.Target[row]
	}
	value = sum / total
	if r.o.Criterion == Absolute {
		below := 0.0
		for i, row := range sorted {
			if below+r.d.Weight[row] > total/2 {
				value = r.d.Target[row]
				if below == total/2 {
					value = (r.d.Target[sorted[i-1]] + value) / 2
				}
				break
			}
			below += r.d.Weight[row]
		}
	}
	for _, row := range sorted {
		e := math.Abs(r.d.Target[row] - value)
		if r.o.Criterion == Squared {
			e *= e
		}
		loss += r.d.Weight[row] * e
	}
	return value, loss
}

// describeTree writes a tree in the form of the reference.
func describeTree(t *tree, at int32, depth int) []string {
	indent := fmt.Sprintf("%*s", 2*depth, "")
	if at < 0 || len(t.nodes) == 0 {
		l := t.leaves[max(-1-at, 0)]
		return []string{fmt.Sprintf("%sleaf %.9g of %d", indent, l.value, l.count)}
	}
	n := t.nodes[at]
	text := []string{fmt.Sprintf("%s%d <= %g, else %.9g", indent, n.feature, n.threshold, n.value)}
	text = append(text, describeTree(t, n.left, depth+1)...)
	return append(text, describeTree(t, n.right, depth+1)...)
}

// randomDataset has few different values in some features and many in others,
// repeated targets, and weights that are whole numbers, quarters or all 1.
func randomDataset(random *rand.Rand, rows int) *Dataset {
	d := &Dataset{TargetName: "y"}
	for f := range 1 + random.IntN(4) {
		levels := []int{2, 4, 12, 1000}[random.IntN(4)]
		column := make([]float64, rows)
		for i := range column {
			column[i] = float64(random.IntN(levels)) * 1.5
		}
		d.Features = append(d.Features, Feature{Name: fmt.Sprintf("x%d", f)})
		d.Columns = append(d.Columns, column)
	}
	weights := random.IntN(3)
	for range rows {
		d.Target = append(d.Target, math.Round(random.NormFloat64()*40)/4)
		d.Weight = append(d.Weight, []float64{
			1, float64(1 + random.IntN(3)), float64(1+random.IntN(9)) / 4,
		}[weights])
	}
	return d
}

func TestTree_EqualsBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 150 {
		d := randomDataset(random, 2+random.IntN(59)).canonical()
		o := ForestOptions{
			Trees:     1,
			MaxDepth:  1 + random.IntN(6),
			MinLeaf:   1 + random.IntN(3),
			Seed:      uint64(i),
			Criterion: []Criterion{Absolute, Squared}[i%2],
		}
		o, err := o.resolve(len(d.Features))
		if err != nil {
			t.Fatal(err)
		}
		g := newGrowth(d, o)
		got := g.newGrower().tree(0)
		r := &reference{d: d, o: o, cuts: g.bins.cuts, minimum: o.MinLeaf}
		all := make([]int, d.Len())
		for k := range all {
			all[k] = k
		}
		r.grow(all, 0, stream(o.Seed).split(0).split(1))
		if diff := cmp.Diff(r.text, describeTree(&got, 0, 0)); diff != "" {
			t.Fatalf("case %d, %+v, %d rows: tree differs from brute force (-want +got):\n%s", i,
				o, d.Len(), diff)
		}
	}
}

func TestTree_PredictsEachExampleByItsLeaf(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 50 {
		d := randomDataset(random, 60).canonical()
		o, _ := ForestOptions{
			Trees:     3,
			MaxDepth:  64,
			Bootstrap: true,
			Seed:      uint64(i),
		}.resolve(len(d.Features))
		trees, err := growForest(context.Background(), d, o, newProgress(nil, 0))
		if err != nil {
			t.Fatal(err)
		}
		for k := range trees {
			if err := trees[k].check(); err != nil {
				t.Fatalf("tree %d: %v", k, err)
			}
			count := 0
			for _, l := range trees[k].leaves {
				count += l.count
			}
			if count != d.Len() {
				t.Errorf("leaves count %d drawn examples, want %d", count, d.Len())
			}
		}
	}
}

// A duplicated example is an example of weight 2: same splits, same values.
func TestTree_DuplicateCountsAsWeightTwo(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 100 {
		d := randomDataset(random, 40)
		double := d.Subset(append(slices.Collect(countTo(40)), slices.Collect(countTo(20))...))
		for k := range 20 {
			d.Weight[k] *= 2
		}
		o, _ := ForestOptions{
			Trees:     1,
			MaxDepth:  5,
			Seed:      uint64(i),
			Criterion: []Criterion{Absolute, Squared}[i%2],
		}.resolve(len(d.Features))
		a := newGrowth(d.canonical(), o).newGrower().tree(0)
		b := newGrowth(double.canonical(), o).newGrower().tree(0)
		for k := range min(len(a.nodes), len(b.nodes)) {
			a.nodes[k].count, b.nodes[k].count = 0, 0
			if math.Abs(a.nodes[k].gain-b.nodes[k].gain) < 1e-9 &&
				math.Abs(a.nodes[k].value-b.nodes[k].value) < 1e-9 {
				b.nodes[k].gain, b.nodes[k].value = a.nodes[k].gain, a.nodes[k].value
			}
		}
		if diff := cmp.Diff(a.nodes, b.nodes, cmp.AllowUnexported(treeNode{})); diff != "" {
			t.Fatalf("case %d: weights and duplicates give different trees:\n%s", i, diff)
		}
	}
}

func countTo(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestForest_PrefixAndCutEqualTraining(t *testing.T) {
	d := randomDataset(rand.New(rand.NewPCG(9, 10)), 60).canonical()
	fit := func(trees, depth int) []tree {
		o, _ := ForestOptions{
			Trees:            trees,
			MaxDepth:         depth,
			FeaturesPerSplit: 1,
			Bootstrap:        true,
			Seed:             5,
		}.resolve(len(d.Features))
		grown, err := growForest(context.Background(), d, o, newProgress(nil, 0))
		if err != nil {
			t.Fatal(err)
		}
		return grown
	}
	all := fit(20, 8)
	if diff := cmp.Diff(all[:7], fit(7, 8), cmp.AllowUnexported(tree{}, treeNode{}, treeLeaf{})); diff != "" {
		t.Errorf("the first 7 trees of 20 differ from a forest of 7:\n%s", diff)
	}
	for k, short := range fit(20, 3) {
		deep := above(describeTree(&all[k], 0, 0), 3)
		if diff := cmp.Diff(deep, above(describeTree(&short, 0, 0), 3)); diff != "" {
			t.Errorf("tree %d: cut at depth 3 differs from grown to depth 3:\n%s", k, diff)
		}
	}
}

// above returns the lines of nodes above a depth. Below it, trees of different maximum depth differ.
func above(lines []string, depth int) []string {
	var kept []string
	for _, line := range lines {
		indent := 0
		for indent < len(line) && line[indent] == ' ' {
			indent++
		}
		if indent < 2*depth {
			kept = append(kept, line)
		}
	}
	return kept
}

// Scan and walk find the same gain, and the walk gives the medians.
func TestAbsoluteSearch_ScanEqualsWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for i := range 100 {
		d := randomDataset(random, 2+random.IntN(300)).canonical()
		o, _ := ForestOptions{Trees: 1, MaxDepth: 1}.resolve(len(d.Features))
		g := newGrowth(d, o)
		grower := g.newGrower()
		grower.draw(0)
		whole := surveyed(grower.items, grower.rows)
		grower.median(&whole)
		for f := range d.Columns {
			var best [2]split
			for k, wanted := range []bool{false, true} {
				a := newAbsoluteSearch(g)
				a.wanted = wanted
				c := splitSelection{growth: g}
				loss, noise := a.beginNode(&whole, &keptSums{})
				c.begin(valueLimits{math.Inf(-1), math.Inf(1)}, loss, noise)
				c.feature, c.best.gain = f, math.Inf(-1)
				a.fill([]int{f})
				a.search(f, &c)
				best[k] = c.best
			}
			if math.Abs(best[0].gain-best[1].gain) > 1e-9 || best[0].last != best[1].last {
				t.Fatalf("case %d: scan found %+v, walk %+v, want the same split", i, best[0], best[1])
			}
			if math.IsInf(best[1].gain, -1) {
				continue
			}
			var sides [2][]int
			for row, number := range g.number {
				c := g.bins.codes[f][number]
				side := 0
				if int(c) > best[1].last {
					side = 1
				}
				sides[side] = append(sides[side], row)
			}
			r := &reference{d: d, o: o}
			for side, median := range []float64{best[1].below, best[1].above} {
				if want, _ := r.fit(sides[side]); math.Abs(median+g.center-want) > 1e-9 {
					t.Fatalf("case %d: side %d has median %g, want %g", i, side, median+g.center,
						want)
				}
			}
		}
	}
}
