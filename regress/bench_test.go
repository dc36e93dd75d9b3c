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
			o := regress.ForestOptions{Trees: 2000, MaxDepth: 6, Bootstrap: true, Criterion: criterion, Folds: -1, Threads: 2}
			for b.Loop() {
				if _, err := regress.FitForest(context.Background(), data, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredict answers for one or four batch sizes with bound and
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

// BenchmarkGuarantee adds the bound and the probability of one candidate.
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

func BenchmarkLoad(b *testing.B) {
	model, manifest := encode(b, paperRegressor(b))
	b.SetBytes(int64(len(model)))
	for b.Loop() {
		if _, err := regress.Load(model, manifest); err != nil {
			b.Fatal(err)
		}
	}
}

func paperRegressor(b *testing.B) *regress.Regressor {
	b.Helper()
	r, err := regress.FitForest(context.Background(), paperLike(288, 1), regress.ForestOptions{Trees: 2000, MaxDepth: 6, Bootstrap: true, Transform: regress.Log, Folds: 5})
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

// BenchmarkSearchForest is the paper's whole search for one target.
func BenchmarkSearchForest(b *testing.B) {
	data := paperLike(288, 1)
	o := regress.ForestOptions{Bootstrap: true, Threads: 1}
	for b.Loop() {
		if _, _, err := regress.SearchForest(context.Background(), data, regress.PaperGrid(5), o); err != nil {
			b.Fatal(err)
		}
	}
}
