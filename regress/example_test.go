package regress_test

import (
	"context"
	"fmt"

	"courier/regress"
)

// Fit epoch times on a few runs, and predict a configuration that was
// never measured.
func Example() {
	data := &regress.Dataset{
		Features:   []regress.Feature{{Name: "batch_size", Monotone: -1}, {Name: "concurrent_jobs", Monotone: 1}},
		Columns:    make([][]float64, 2),
		TargetName: "epoch_time", TargetUnit: "s",
	}
	for _, batch := range []float64{16, 32, 64, 128, 256} {
		for jobs := 1.0; jobs <= 5; jobs++ {
			data.Columns[0] = append(data.Columns[0], batch)
			data.Columns[1] = append(data.Columns[1], jobs)
			data.Target = append(data.Target, 640/batch+4*jobs)
		}
	}
	r, err := regress.FitForest(context.Background(), data, regress.ForestOptions{
		Trees: 200, MaxDepth: 6, Bootstrap: true, Transform: regress.Log, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := regress.Compile(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	point, err := p.Predict([]float64{64, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, promised := p.UpperBound(point, 0.9)
	fmt.Printf("about %.0f s, under %.0f s in 9 of 10 cases (%v)\n", point.Value, bound, promised)
	_, promised = p.UpperBound(regress.Prediction{Value: point.Value}, 0.99)
	fmt.Println("25 examples promise 0.99:", promised)
	far, err := p.Predict([]float64{64, 9})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("9 jobs were never seen:", far.Extrapolated)
	// Output:
	// about 21 s, under 25 s in 9 of 10 cases (true)
	// 25 examples promise 0.99: false
	// 9 jobs were never seen: true
}
