package regress_test

import (
	"context"
	"fmt"
	"math"

	"courier/regress"
)

// runs are 60 training runs: 600,000 samples in batches, on some cores, beside others.
func runs() *regress.Dataset {
	data := &regress.Dataset{
		Features: []regress.Feature{
			{Name: "batch_size", Monotone: -1},
			{Name: "cpus"},
			{Name: "concurrent_jobs", Monotone: 1},
		},
		Columns:    make([][]float64, 3),
		TargetName: "time", TargetUnit: "s",
	}
	for _, batch := range []float64{32, 64, 128, 256, 512} {
		for _, cpus := range []float64{1, 2, 4, 8} {
			for _, jobs := range []float64{1, 3, 5} {
				for f, x := range []float64{batch, cpus, jobs} {
					data.Columns[f] = append(data.Columns[f], x)
				}
				noise := math.Exp(0.03 * math.Sin(7*float64(len(data.Target))))
				data.Target = append(data.Target,
					noise*(20+4000*math.Pow(batch, -0.8)*(0.4+0.6/cpus)*(1+0.1*jobs)))
			}
		}
	}
	return data
}

// Let the examples decide which family fits them, and ask about a batch size
// between measured batch sizes.
func ExampleSelect() {
	data := runs()
	r, report, err := regress.Select(context.Background(), data, regress.SelectOptions{
		Families: []string{
			regress.FamilyForest, regress.FamilyLaw,
		}, Confidence: 0.9, Shuffles: 2, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := regress.Compile(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	point, err := p.Predict([]float64{100, 2, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, promised := p.UpperBound(point, 0.9)
	fmt.Println("chosen:", report.Winner)
	fmt.Println("better than as last time:",
		report.Candidates[0].MAPE.Value < report.Baselines[1].MAPE.Value)
	fmt.Println("within 10 % of the truth:", math.Abs(point.Value/111.4-1) < 0.1)
	fmt.Println("bound above the prediction, and promised:", bound > point.Value, promised)
	// Output:
	// chosen: law
	// better than as last time: true
	// within 10 % of the truth: true
	// bound above the prediction, and promised: true true
}
