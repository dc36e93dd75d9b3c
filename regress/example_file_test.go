package regress_test

import (
	"context"
	"fmt"
	"math"

	"courier/regress"
)

// Keep a regressor as two files, and answer from them elsewhere: how likely a run
// ends within a limit, and how far that can be trusted.
func ExampleLoad() {
	r, err := regress.FitGaussian(context.Background(), runs(), regress.GaussianOptions{
		Transform: regress.Log,
		Seed:      1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	model := r.EncodeModel()
	manifest, err := r.EncodeManifest()
	if err != nil {
		fmt.Println(err)
		return
	}

	p, err := regress.Load(model, manifest)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range [][]float64{{64, 2, 3}, {64, 2, 12}} {
		point, err := p.Predict(row)
		if err != nil {
			fmt.Println(err)
			return
		}
		chance, promised := p.Probability(point, 1.2*point.Value)
		fmt.Printf("%g jobs: a fifth longer is very likely enough: %v, promised: %v\n", row[2],
			chance > 0.9, promised)
	}
	_, err = regress.Load(model[:len(model)/2], manifest)
	fmt.Println("half a file:", err != nil)
	// Output:
	// 3 jobs: a fifth longer is very likely enough: true, promised: true
	// 12 jobs: a fifth longer is very likely enough: false, promised: false
	// half a file: true
}

// Remove values that cannot be durations, and explain why.
func ExampleDataset_Clean() {
	data := runs()
	data.Target[3], data.Columns[1][7] = 0, math.NaN()
	clean, dropped, err := data.Clean(math.SmallestNonzeroFloat64, math.MaxFloat64)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(clean.Len(), "of", data.Len())
	for _, d := range dropped {
		fmt.Println(d.Count, d.Reason)
	}
	// Output:
	// 58 of 60
	// 1 feature cpus is NaN
	// 1 target is 0 or below
}

// Which features matter, and how the prediction moves along one.
func ExamplePartialDependence() {
	data := runs()
	r, err := regress.FitLaw(context.Background(), data, regress.LawOptions{Transform: regress.Log})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := regress.Compile(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	shares, err := regress.Importance(p, data, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	curve, err := regress.PartialDependence(p, data, 0, []float64{32, 128, 512})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the batch size matters most:", shares[0] > shares[1] && shares[0] > shares[2])
	fmt.Println("larger batches are faster:", curve[0] > curve[1] && curve[1] > curve[2])
	// Output:
	// the batch size matters most: true
	// larger batches are faster: true
}
