package regress_test

import (
	"context"
	"fmt"
	"testing"

	"courier/regress"
)

func BenchmarkFitForest(b *testing.B) {
	data := paperLike(288, 1)
	for _, criterion := range []regress.Criterion{regress.Absolute, regress.Squared} {
		b.Run(string(criterion)+"/rows=288/trees=2000/depth=6", func(b *testing.B) {
			b.ReportAllocs()
			o := regress.ForestOptions{
				Trees:     2000,
				MaxDepth:  6,
				Bootstrap: true,
				Criterion: criterion,
				Folds:     -1,
				Threads:   2,
			}
			for b.Loop() {
				if _, err := regress.FitForest(context.Background(), data, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredict predicts one or four batch sizes with bound and
// probability, as the advisor does for a request.
func BenchmarkPredict(b *testing.B) {
	p := paperForest(b)
	for _, candidates := range []int{1, 4, 64} {
		b.Run(fmt.Sprintf("discrete/trees=2000/candidates=%d", candidates), func(b *testing.B) {
			b.ReportAllocs()
			rows := make([][]float64, candidates)
			for i := range rows {
				rows[i] = []float64{[]float64{64, 128, 256, 512}[i%4], 2, 3, 1, 6}
			}
			for b.Loop() {
				for _, row := range rows {
					if _, err := p.Predict(row); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkGuarantee computes the bound and the probability of one prediction.
func BenchmarkGuarantee(b *testing.B) {
	p := paperForest(b)
	b.ReportAllocs()
	point, err := p.Predict([]float64{64, 2, 3, 1, 6})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.UpperBound(point, 0.95)
		p.Probability(point, point.Value)
	}
}

func paperRegressor(b *testing.B) *regress.Regressor {
	b.Helper()
	r, err := regress.FitForest(context.Background(), paperLike(288, 1), regress.ForestOptions{
		Trees:     2000,
		MaxDepth:  6,
		Bootstrap: true,
		Transform: regress.Log,
		Folds:     5,
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func paperForest(b *testing.B) *regress.Predictor {
	b.Helper()
	p, err := regress.Compile(paperRegressor(b))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkSearchForest runs the grid search of the paper for one target.
func BenchmarkSearchForest(b *testing.B) {
	data := paperLike(288, 1)
	o := regress.ForestOptions{Bootstrap: true, Threads: 1}
	for b.Loop() {
		if _, _, err := regress.SearchForest(context.Background(), data, regress.PaperGrid(5), o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFitBoosting adds up 100 trees of 31 leaves on 20 continuous features.
func BenchmarkFitBoosting(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d/features=20/trees=100/leaves=31", rows), func(b *testing.B) {
			if testing.Short() && rows > 100_000 {
				b.Skip("a long one")
			}
			data := continuous(rows, 20, 3)
			o := regress.BoostingOptions{
				Trees:     100,
				Leaves:    31,
				MinLeaf:   20,
				Criterion: regress.Squared,
				Folds:     -1,
				Threads:   2,
			}
			for b.Loop() {
				if _, err := regress.FitBoosting(context.Background(), data, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFitForestOfMany grows ten trees without a depth limit.
func BenchmarkFitForestOfMany(b *testing.B) {
	for _, c := range []struct {
		criterion regress.Criterion
		rows      int
	}{{regress.Absolute, 10_000}, {regress.Squared, 10_000}, {regress.Squared, 100_000}, {
		regress.Absolute, 100_000,
	}} {
		b.Run(fmt.Sprintf("%s/rows=%d/features=20/trees=10", c.criterion, c.rows), func(b *testing.B) {
			if testing.Short() && c.rows > 10_000 {
				b.Skip("a long one")
			}
			data := continuous(c.rows, 20, 3)
			o := regress.ForestOptions{
				Trees:     10,
				MaxDepth:  64,
				Bootstrap: true,
				Criterion: c.criterion,
				Folds:     -1,
				Threads:   2,
			}
			for b.Loop() {
				if _, err := regress.FitForest(context.Background(), data, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
