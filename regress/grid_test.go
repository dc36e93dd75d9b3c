package regress_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"courier/regress"
)

// Each point of the nested search has the scores that a forest of its configurations
// gets when it is fitted separately.
func TestSearchForest_EqualsFittingEachPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector; its goroutines meet in shorter tests, too")
	}
	d := paperLike(150, 3)
	g := regress.Grid{
		Trees:            []int{5, 12},
		MaxDepth:         []int{7, 2, 4},
		MinLeaf:          []int{1, 3},
		FeaturesPerSplit: []int{0, 2},
		Criteria:         []regress.Criterion{regress.Squared, regress.Absolute},
	}
	for _, transform := range []regress.Transform{regress.None, regress.Log} {
		o := regress.ForestOptions{Bootstrap: true, Seed: 4, Transform: transform}
		points, best, err := regress.SearchForest(context.Background(), d, g, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(points) != 48 {
			t.Fatalf("%d points, want 48", len(points))
		}
		for i, p := range points {
			r, err := regress.FitForest(context.Background(), d, p.Options)
			if err != nil {
				t.Fatal(err)
			}
			s := r.Manifest.Scores
			for name, pair := range map[string][2]float64{"MSE": {
				p.MSE, s.MSE.Value,
			}, "MAE": {p.MAE, s.MAE.Value},
				"R2": {p.R2, s.R2.Value}, "MAPE": {p.MAPE, s.MAPE.Value}} {
				if math.Abs(pair[0]-pair[1]) > 1e-9*math.Abs(pair[1]) {
					t.Errorf("%d trees, depth %d, %d features, %s: %s = %v, want %v of a separate fit",
						p.Options.Trees,
						p.Options.MaxDepth, p.Options.FeaturesPerSplit, p.Options.Criterion, name, pair[0], pair[1])
				}
			}
			if p.MSE < points[best].MSE {
				t.Errorf("point %d is better than the best, %d", i, best)
			}
		}
	}
}

func TestSearchForest_RefusesAndStops(t *testing.T) {
	d := paperLike(96, 1)
	g := regress.PaperGrid(5)
	for name, change := range map[string]func(*regress.Grid){
		"trees":     func(g *regress.Grid) { g.Trees = []int{50, 0} },
		"max_depth": func(g *regress.Grid) { g.MaxDepth = []int{4, 65} },
		"criterion": func(g *regress.Grid) { g.Criteria = []regress.Criterion{regress.Quantile} },
	} {
		bad := g
		change(&bad)
		if _, _, err := regress.SearchForest(context.Background(), d, bad, regress.ForestOptions{}); !errors.Is(
			err, regress.ErrBadOptions,
		) {
			t.Errorf("%s: SearchForest = %v, want ErrBadOptions", name, err)
		}
	}
	if _, _, err := regress.SearchForest(context.Background(), d, g,
		regress.ForestOptions{Folds: -1}); !errors.Is(err, regress.ErrTooFewExamples) {
		t.Errorf("SearchForest without folds = %v, want ErrTooFewExamples", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := regress.ForestOptions{Progress: func(done, planned int) {
		if cancel(); planned != 2*2*5*2000 {
			t.Errorf("%d trees are planned, want 40000", planned)
		}
	}}
	if _, _, err := regress.SearchForest(ctx, d, g, o); !errors.Is(err, context.Canceled) {
		t.Errorf("SearchForest = %v, want context.Canceled", err)
	}
}

func TestPaperGrid_Has252Points(t *testing.T) {
	g := regress.PaperGrid(5)
	if n := len(g.Trees) * len(g.MaxDepth) * len(g.FeaturesPerSplit) * len(g.Criteria); n != 252 {
		t.Errorf("PaperGrid has %d points, want 252", n)
	}
}
