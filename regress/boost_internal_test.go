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

// slowBooster grows trees by brute force: every leaf, feature and threshold by
// floating-point sums over all its rows, values from sorted copies. It shares
// with booster only the cuts between values and the rule for ties.
type slowBooster struct {
	reference
	options  BoostingOptions
	residual []float64
	delta    float64
}

type slowLeaf struct {
	rows  []int
	depth int
	path  string
}

// tree returns the lines of one more tree, each leaf by its path.
func (s *slowBooster) tree() (lines []string) {
	all := slices.Collect(countTo(s.d.Len()))
	s.delta = s.quantile(all, s.options.Level, math.Abs)
	leaves := []slowLeaf{{rows: all}}
	for len(leaves) < s.options.Leaves {
		best, leaf, feature, threshold := 0.0, -1, 0, 0.0
		for k, l := range leaves {
			if s.options.MaxDepth > 0 && l.depth == s.options.MaxDepth {
				continue
			}
			if gain, f, t := s.bestCut(l.rows); gain > best*(1+1e-9) {
				best, leaf, feature, threshold = gain, k, f, t
			}
		}
		if leaf < 0 {
			break
		}
		l := leaves[leaf]
		left, right := s.divide(l.rows, feature, threshold)
		split := fmt.Sprintf("%s%d<=%.9g ", l.path, feature, threshold)
		leaves[leaf] = slowLeaf{left, l.depth + 1, split + "yes, "}
		leaves = append(leaves, slowLeaf{right, l.depth + 1, split + "no, "})
	}
	for _, l := range leaves {
		value := s.options.LearningRate * s.value(l.rows)
		for _, row := range l.rows {
			s.residual[row] -= value
		}
		lines = append(lines,
			fmt.Sprintf("%s%.7g of %d", l.path, math.Round(value*1e9)/1e9+0, len(l.rows)))
	}
	slices.Sort(lines)
	return lines
}

func (s *slowBooster) bestCut(rows []int) (best float64, feature int, threshold float64) {
	for f := range s.d.Columns {
		var values []float64
		for _, row := range rows {
			values = append(values, s.d.Columns[f][row])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := 1; i < len(values); i++ {
			cut := s.nearest(f, values[i-1], values[i])
			left, right := s.divide(rows, f, cut)
			if len(left) < s.options.MinLeaf || len(right) < s.options.MinLeaf {
				continue
			}
			gl, wl := s.pulls(left)
			gr, wr := s.pulls(right)
			if gain := wl * wr / (wl + wr) * (gl/wl - gr/wr) * (gl/wl - gr/wr); gain > best*(1+
				1e-9) && gain > 1e-15 {
				best, feature, threshold = gain, f, cut
			}
		}
	}
	return best, feature, threshold
}

func (s *slowBooster) pulls(rows []int) (sum, weight float64) {
	for _, row := range rows {
		r, w, pull := s.residual[row], s.d.Weight[row], 0.0
		switch s.options.Criterion {
		case Squared:
			pull = r
		case Huber:
			pull = min(max(r, -s.delta), s.delta)
		case Quantile:
			if pull = s.options.Level; r < 0 {
				pull--
			}
		case Absolute:
			if r != 0 {
				pull = math.Copysign(1, r)
			}
		}
		sum += w * pull
		weight += w
	}
	return sum, weight
}

func (s *slowBooster) value(rows []int) float64 {
	same := func(r float64) float64 { return r }
	sum, weight, near := 0.0, 0.0, 0.0
	median := s.quantile(rows, 0.5, same)
	for _, row := range rows {
		r, w := s.residual[row], s.d.Weight[row]
		sum += w * r
		weight += w
		near += w * min(max(r-median, -s.delta), s.delta)
	}
	switch s.options.Criterion {
	case Squared:
		return sum / weight
	case Huber:
		return median + near/weight
	case Quantile:
		return s.quantile(rows, s.options.Level, same)
	}
	return median
}

func (s *slowBooster) quantile(rows []int, level float64, of func(float64) float64) float64 {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b int) int {
		if of(s.residual[a]) < of(s.residual[b]) {
			return -1
		}
		return 1
	})
	total, below := 0.0, 0.0
	for _, row := range sorted {
		total += s.d.Weight[row]
	}
	for i, row := range sorted {
		if below+s.d.Weight[row] > level*total {
			if below == level*total && i > 0 {
				return (of(s.residual[sorted[i-1]]) + of(s.residual[row])) / 2
			}
			return of(s.residual[row])
		}
		below += s.d.Weight[row]
	}
	return of(s.residual[sorted[len(sorted)-1]])
}

// leafLines writes the leaves of a tree by their paths.
func leafLines(t *tree, at int32, path string, start float64) []string {
	if at < 0 || len(t.nodes) == 0 {
		l := t.leaves[max(-1-at, 0)]
		return []string{
			fmt.Sprintf("%s%.7g of %d", path, math.Round((l.value-start)*1e9)/1e9+0, l.count),
		}
	}
	n := t.nodes[at]
	path += fmt.Sprintf("%d<=%.9g ", n.feature, n.threshold)
	return append(leafLines(t, n.left, path+"yes, ", start),
		leafLines(t, n.right, path+"no, ", start)...)
}

func TestBooster_EqualsBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for i := range 200 {
		d := randomDataset(random, 10+random.IntN(50))
		for k := range d.Target {
			d.Target[k] += random.NormFloat64()
		}
		d = d.canonical()
		o := BoostingOptions{
			Trees:        4,
			Leaves:       2 + random.IntN(10),
			MaxDepth:     random.IntN(5),
			MinLeaf:      1 + random.IntN(4),
			Seed:         uint64(i),
			LearningRate: 0.3,
			Criterion:    []Criterion{Squared, Absolute, Huber, Quantile}[i%4],
		}
		if o.Criterion == Quantile {
			o.Level = 0.75
		}
		o, err := o.resolve()
		if err != nil {
			t.Fatal(err)
		}
		b := newBooster(d, o)
		s := &slowBooster{
			reference: reference{d: d, cuts: b.bins.cuts},
			options:   o,
			residual:  slices.Clone(d.Target),
		}
		all := slices.Collect(countTo(d.Len()))
		s.delta = s.delta0(all, b.center)
		start := s.value(all)
		for k := range s.residual {
			s.residual[k] -= start
		}
		for n := range o.Trees {
			got, before := b.next(), 0.0
			if n == 0 {
				before = start
			}
			have := leafLines(&got, 0, "", before)
			slices.Sort(have)
			if diff := cmp.Diff(s.tree(), have); diff != "" {
				t.Fatalf("case %d, %+v, %d rows, tree %d differs from brute force (-want +got):\n%s",
					i, o, d.Len(), n, diff)
			}
		}
	}
}

// delta0 returns Huber's delta for the start: the quantile of the distances from the middle.
func (s *slowBooster) delta0(rows []int, middle float64) float64 {
	return s.quantile(rows, s.options.Level, func(y float64) float64 {
		return math.Abs(y - middle)
	})
}

// A booster assigns examples that a tree was not grown on to the same leaf as the
// tree does.
func TestBooster_ResidualsFollowTheTrees(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	for i := range 30 {
		d := randomDataset(random, 80).canonical()
		o, err := BoostingOptions{
			Trees:        6,
			RowShare:     0.5,
			FeatureShare: 0.7,
			MinLeaf:      2,
			Criterion:    []Criterion{Squared, Absolute}[i%2],
			Seed:         uint64(i),
		}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		b := newBooster(d, o)
		var e ensemble
		for range o.Trees {
			e.trees = append(e.trees, b.next())
		}
		for k := range d.Target {
			want := d.Target[k] - e.predict(d.Row(k, nil))
			if math.Abs(b.residual[k]-want) > 1e-9 {
				t.Fatalf("case %d: residual of example %d = %g, want target minus prediction = %g",
					i, k,
					b.residual[k], want)
			}
		}
		for k := range e.trees {
			if err := e.trees[k].check(); err != nil {
				t.Fatalf("tree %d: %v", k, err)
			}
			if n := len(e.trees[k].nodes); n > 0 && e.trees[k].nodes[0].count != 40 {
				t.Errorf("tree %d is grown on %d examples, want half of 80", k,
					e.trees[k].nodes[0].count)
			}
		}
	}
}

func TestBoost_FirstTreesAreThoseOfAShorterFit(t *testing.T) {
	d := randomDataset(rand.New(rand.NewPCG(35, 36)), 100).canonical()
	fit := func(trees int) []tree {
		o, _ := BoostingOptions{Trees: trees, RowShare: 0.7, FeatureShare: 0.5, Seed: 2}.resolve()
		grown, err := boost(context.Background(), d, o, newProgress(nil, 0))
		if err != nil {
			t.Fatal(err)
		}
		return grown
	}
	if diff := cmp.Diff(fit(20)[:7], fit(7), cmp.AllowUnexported(tree{}, treeNode{}, treeLeaf{})); diff != "" {
		t.Errorf("the first 7 trees of 20 differ from a sum of 7:\n%s", diff)
	}
}

func TestQuantile_EqualsSorting(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 38))
	for i := range 300 {
		n := 1 + random.IntN(200)
		of, d := make([]weightedResidual, n), &Dataset{}
		s := &slowBooster{reference: reference{d: d}}
		for k := range of {
			of[k] = weightedResidual{
				math.Round(random.NormFloat64() * 20),
				[]float64{1, float64(1 + random.IntN(4))}[i%2],
			}
			s.residual = append(s.residual, of[k].r)
			d.Weight = append(d.Weight, of[k].w)
		}
		level := []float64{0.5, 0.05, 0.9, random.Float64()}[i%4]
		want := s.quantile(slices.Collect(countTo(n)), level, func(r float64) float64 { return r })
		if got := quantile(of, level); got != want {
			t.Fatalf("case %d: quantile of %d at %g = %g, want %g", i, n, level, got, want)
		}
	}
}
