package baseline

import (
	"fmt"
	"math"
	"slices"

	"courier/regress/leastsquares"
)

// Constants of the queueing law of the ICPE 2021 study: service time of the CPU in seconds per
// iteration, number of workers, and images in all ten epochs.
const (
	queueServiceSeconds = 0.045
	queueWorkers        = 3
	queueImages         = 600_000
)

// queueFeatures are the features of the law.
var queueFeatures = [3]string{"batch_size", "cpus", "concurrent_jobs"}

// Queueing fits the queueing law of the ICPE 2021 study (DOI 10.1145/3427921.3450233, section 4.2).
// A job makes a number of iterations. In each it is served by a CPU without a queue and waits for a
// disk, an M/M/1 queue whose rate mu is linear in batch size and processes:
//
//	time = iterations (S + 1 / (mu - lambda)),  lambda = max(1, cpus jobs / workers) / S
//
// mu - lambda is kept at or above the smallest value of the examples, because on other data it
// would cross zero. An error names a missing feature.
func Queueing(train *Dataset) (Predict, error) {
	if err := train.Validate(); err != nil {
		return nil, err
	}
	q, err := newQueueingLaw(train)
	if err != nil {
		return nil, err
	}
	smallest := math.Inf(1)
	var rows [][]float64
	var rates []float64
	for i, row := range train.Rows {
		wait := train.Target[i]*q.batch(row)/queueImages - queueServiceSeconds
		if wait <= 0 {
			continue // the run is faster than the service time of the CPU
		}
		smallest = min(smallest, 1/wait)
		rows = append(rows, []float64{1, q.batch(row), q.processes(row)})
		rates = append(rates, 1/wait+q.arrivals(row))
	}
	if len(rates) < 3 {
		return nil, fmt.Errorf("%d runs take longer than the CPU alone, want 3", len(rates))
	}

	mu := leastsquares.Fit(rows, rates)
	return func(row []float64) float64 {
		rate := leastsquares.Predict(mu, []float64{1, q.batch(row), q.processes(row)})
		spare := max(rate-q.arrivals(row), smallest)
		return queueImages / q.batch(row) * (queueServiceSeconds + 1/spare)
	}, nil
}

// queueingLaw holds the columns of batch size, CPUs and concurrent jobs.
type queueingLaw [3]int

func newQueueingLaw(d *Dataset) (q queueingLaw, err error) {
	for i, name := range queueFeatures {
		q[i] = slices.IndexFunc(d.Features, func(f Feature) bool {
			return f.Name == name && f.Levels == nil
		})
		isInvalid := func(row []float64) bool { return row[q[i]] <= 0 }
		if q[i] < 0 || slices.ContainsFunc(d.Rows, isInvalid) {
			return q, fmt.Errorf("needs a feature %s with positive values", name)
		}
	}
	return q, nil
}

func (q queueingLaw) batch(row []float64) float64 { return row[q[0]] }

func (q queueingLaw) processes(row []float64) float64 { return row[q[1]] * row[q[2]] }

// arrivals returns lambda, the arrival rate at the disk.
func (q queueingLaw) arrivals(row []float64) float64 {
	return max(1, q.processes(row)/queueWorkers) / queueServiceSeconds
}
