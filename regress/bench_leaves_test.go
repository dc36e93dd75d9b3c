package regress_test

import (
	"context"
	"fmt"
	"testing"

	"courier/regress"
)

// BenchmarkLoad compares loading a regressor
// (parsing, compiling, reading by leaves, comparing both on 256 rows) with reading by leaves only.
func BenchmarkLoad(b *testing.B) {
	model, manifest := encode(b, paperRegressor(b))
	for _, c := range []struct {
		name string
		load func() error
	}{
		{"courier", func() error { _, err := regress.Load(model, manifest); return err }},
		{"leaves", func() error { _, err := regress.ReadByLeaves(model); return err }},
	} {
		b.Run(c.name+"/trees=2000/depth=6", func(b *testing.B) {
			b.SetBytes(int64(len(model)))
			for b.Loop() {
				if err := c.load(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredictContinuous predicts rows that differ in one of 20
// features, each with about 255 thresholds, and compares with leaves.
func BenchmarkPredictContinuous(b *testing.B) {
	data := continuous(2000, 20, 3)
	for _, depth := range []int{6, 12} {
		o := regress.ForestOptions{
			Trees:            2000,
			MaxDepth:         depth,
			FeaturesPerSplit: 6,
			Bootstrap:        true,
			Criterion:        regress.Squared,
			Folds:            -1,
		}
		r, err := regress.FitForest(context.Background(), data, o)
		if err != nil {
			b.Fatal(err)
		}
		p, err := regress.Compile(r)
		if err != nil {
			b.Fatal(err)
		}
		leaves, err := regress.ReadByLeaves(r.EncodeModel())
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name    string
			predict func(row []float64)
		}{
			{"courier", func(row []float64) { p.Predict(row) }},
			{"leaves", func(row []float64) { leaves(row) }},
		} {
			for _, candidates := range []int{4, 64} {
				b.Run(fmt.Sprintf("%s/depth=%d/candidates=%d", c.name, depth, candidates), func(b *testing.B) {
					b.ReportAllocs()
					rows := make([][]float64, candidates)
					for i := range rows {
						rows[i] = data.Row(7, nil)
						rows[i][2] = float64(i) / float64(candidates)
					}
					for b.Loop() {
						for _, row := range rows {
							c.predict(row)
						}
					}
				})
			}
		}
	}
}
