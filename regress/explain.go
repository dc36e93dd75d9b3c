package regress

import (
	"fmt"
	"math"
	"slices"
)

// maxExplained is the maximum number of examples of an explanation.
const maxExplained = 500

// Importance returns how much the predictions depend on each feature: the mean change of the
// logarithm (without Log: of the value) when the feature is shuffled among the examples (Breiman
// 2001), as shares that sum to 1, or zeros if nothing changes. An error wraps ErrBadRow.
func Importance(p *Predictor, d *Dataset, seed uint64) ([]float64, error) {
	rows := spreadRows(d.Len())
	shares, total := make([]float64, len(d.Features)), 0.0
	for f := range d.Features {
		random := stream(seed).split(uint64(f))
		mixed := slices.Clone(rows)
		random.shuffle(mixed)
		var row []float64
		for k, i := range rows {
			row = d.Row(i, row)
			before, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("example %d: %w", i, err)
			}
			row[f] = d.Columns[f][mixed[k]]
			after, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("example %d: %w", i, err)
			}
			shares[f] += math.Abs(p.fitted(after.Value)-p.fitted(before.Value)) / float64(len(rows))
		}
		total += shares[f]
	}
	for f := range shares {
		if total > 0 {
			shares[f] /= total
		}
	}
	return shares, nil
}

func (p *Predictor) fitted(value float64) float64 {
	if p.manifest.Transform == Log {
		return math.Log(value)
	}
	return value
}

// spreadRows returns at most maxExplained examples, evenly spaced.
func spreadRows(n int) []int {
	step := (n + maxExplained - 1) / maxExplained
	var rows []int
	for i := 0; i < n; i += max(step, 1) {
		rows = append(rows, i)
	}
	return rows
}

// PartialDependence returns the mean prediction over the examples with a feature set to each of
// some values (Friedman 2001), in the unit of the target; under Log the geometric mean. An error
// wraps ErrBadRow.
func PartialDependence(p *Predictor, d *Dataset, feature int, values []float64) ([]float64, error) {
	rows := spreadRows(d.Len())
	curve := make([]float64, len(values))
	var row []float64
	for k, x := range values {
		sum := 0.0
		for _, i := range rows {
			row = d.Row(i, row)
			row[feature] = x
			point, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("feature %s at %g: %w", d.Features[feature].Name, x, err)
			}
			sum += p.fitted(point.Value) / float64(len(rows))
		}
		curve[k] = p.manifest.Transform.invert(sum)
	}
	return curve, nil
}

// Constants of the queueing law of the ICPE 2021 study: service time of the CPU in seconds per
// iteration, number of workers, and images in all ten epochs.
const (
	queueServiceSeconds = 0.045
	queueWorkers        = 3
	queueImages         = 600_000
	queueName           = "queueing law"
)

// queueFeatures are the features of the law: the name in the study and the name in Courier.
var queueFeatures = [3][2]string{
	{"batch", "batch_size"},
	{"cpu", "cpus"},
	{"njobs", "concurrent_jobs"},
}

// QueueingBaseline returns the queueing law of the ICPE 2021 study (DOI
// 10.1145/3427921.3450233, section 4.2). A job makes a number of iterations. In each it is served
// by a CPU without a queue and waits for a disk, an M/M/1 queue whose rate mu is linear in batch
// size and processes:
//
//	time = iterations (S + 1 / (mu - lambda)),  lambda = max(1, cpus jobs / workers) / S
//
// mu - lambda is kept at or above the smallest value of the training set, because on other data it
// would cross zero. A dataset without the features of the study gets a baseline whose Fit returns
// an error that names the missing feature.
func QueueingBaseline(d *Dataset) Baseline {
	q := queueingLaw{}
	for i, names := range queueFeatures {
		q.columns[i] = slices.IndexFunc(d.Features, func(f Feature) bool {
			return slices.Contains(names[:], f.Name) && f.Levels == nil
		})
		if q.columns[i] < 0 || slices.Min(d.Columns[q.columns[i]]) <= 0 {
			err := fmt.Errorf("needs a feature %s or %s with positive values", names[0], names[1])
			return Baseline{
				Name: queueName,
				Fit:  func(*Dataset) (func(row []float64) float64, error) { return nil, err },
			}
		}
	}
	return Baseline{Name: queueName, Fit: q.fit}
}

// queueingLaw knows the columns of batch size, CPUs and concurrent jobs.
type queueingLaw struct{ columns [3]int }

func (q *queueingLaw) batch(row []float64) float64 { return row[q.columns[0]] }

func (q *queueingLaw) processes(row []float64) float64 {
	return row[q.columns[1]] * row[q.columns[2]]
}

// arrivals returns lambda, the arrival rate at the disk.
func (q *queueingLaw) arrivals(row []float64) float64 {
	return max(1, q.processes(row)/queueWorkers) / queueServiceSeconds
}

func (q *queueingLaw) fit(train *Dataset) (func(row []float64) float64, error) {
	rates := &Dataset{
		Features: []Feature{{Name: "batch"}, {Name: "processes"}},
		Columns:  make([][]float64, 2),
	}
	smallest := math.Inf(1)
	for i, seconds := range train.Target {
		row := train.Row(i, nil)
		wait := seconds*q.batch(row)/queueImages - queueServiceSeconds
		if wait <= 0 {
			continue // The run is faster than the service time of the CPU alone.
		}

		smallest = min(smallest, 1/wait)
		rates.Columns[0] = append(rates.Columns[0], q.batch(row))
		rates.Columns[1] = append(rates.Columns[1], q.processes(row))
		rates.Target = append(rates.Target, 1/wait+q.arrivals(row))
	}
	if n := len(rates.Target); n < 3 {
		return nil, fmt.Errorf("%d runs take longer than the CPU alone, want 3", n)
	}

	mu, err := LeastSquares(rates, []string{"batch", "processes"})
	if err != nil {
		return nil, err
	}
	return func(row []float64) float64 {
		spare := max(mu([]float64{q.batch(row), q.processes(row)})-q.arrivals(row), smallest)
		return queueImages / q.batch(row) * (queueServiceSeconds + 1/spare)
	}, nil
}
