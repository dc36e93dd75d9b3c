package regress_test

import (
	"context"
	"testing"

	"courier/regress"
)

func BenchmarkFitForest(b *testing.B) {
	data := paperLike(288, 1)
	for _, criterion := range []regress.Criterion{regress.Absolute, regress.Squared} {
		b.Run(string(criterion)+"/rows=288/trees=2000/depth=6", func(b *testing.B) {
			for b.Loop() {
				o := regress.ForestOptions{Trees: 2000, MaxDepth: 6, Bootstrap: true, Criterion: criterion, Folds: -1, Threads: 2}
				if _, err := regress.FitForest(context.Background(), data, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
