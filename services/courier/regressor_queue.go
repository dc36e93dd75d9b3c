package main

import (
	"fmt"
	"math"
	"slices"

	"courier/regress"
)

// The queueing law of the ICPE 2021 study (DOI 10.1145/3427921.3450233, section
// 4.2): a job goes round iterations times, each time it is served by a CPU
// without a queue and waits for a disk, an M/M/1 queue whose rate is linear in
// batch size and processes,
//
//	time = iterations (S + 1 / (mu - lambda)),  lambda = max(1, cpus jobs / workers) / S
//
// with S = 0.045 s, 3 workers, and 60,000 images in each of 10 epochs.
const (
	queueService = 0.045
	queueWorkers = 3
	queueImages  = 600_000
	queueName    = "queueing law"
)

// queueNames are the law's features: by the study's names, and by Courier's.
var queueNames = [3][2]string{{"batch", "batch_size"}, {"cpu", "cpus"}, {"njobs", "concurrent_jobs"}}

// queueingBaseline is the queueing law; of examples without the study's features
// it says that it needs them. mu - lambda is kept above 0, which it crosses on
// other data.
func queueingBaseline(d *regress.Dataset) regress.Baseline {
	var at [3]int
	for i, names := range queueNames {
		at[i] = slices.IndexFunc(d.Features, func(f regress.Feature) bool { return slices.Contains(names[:], f.Name) && f.Levels == nil })
		if at[i] < 0 || slices.Min(d.Columns[at[i]]) <= 0 {
			return regress.Baseline{Name: queueName, Fit: func(*regress.Dataset) (func(row []float64) float64, error) {
				return nil, fmt.Errorf("needs a feature %s or %s of numbers above 0", names[0], names[1])
			}}
		}
	}
	arrivals := func(row []float64) float64 { return max(1, row[at[1]]*row[at[2]]/queueWorkers) / queueService }
	return regress.Baseline{Name: queueName, Fit: func(train *regress.Dataset) (func(row []float64) float64, error) {
		rates := &regress.Dataset{Features: []regress.Feature{{Name: "batch"}, {Name: "processes"}}, Columns: make([][]float64, 2)}
		slowest := math.Inf(1)
		for i, seconds := range train.Target {
			row := train.Row(i, nil)
			wait := seconds*row[at[0]]/queueImages - queueService
			if wait <= 0 {
				continue // faster than the CPU alone is said to be
			}
			slowest = min(slowest, 1/wait)
			rates.Columns[0] = append(rates.Columns[0], row[at[0]])
			rates.Columns[1] = append(rates.Columns[1], row[at[1]]*row[at[2]])
			rates.Target = append(rates.Target, 1/wait+arrivals(row))
		}
		if len(rates.Target) < 3 {
			return nil, fmt.Errorf("%d runs take longer than the CPU alone, want 3", len(rates.Target))
		}
		mu, err := regress.LeastSquares(rates, []string{"batch", "processes"})
		if err != nil {
			return nil, err
		}
		return func(row []float64) float64 {
			lambda := arrivals(row)
			spare := max(mu([]float64{row[at[0]], row[at[1]] * row[at[2]]})-lambda, slowest)
			return queueImages / row[at[0]] * (queueService + 1/spare)
		}, nil
	}}
}
