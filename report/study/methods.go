package study

import (
	"context"
	"errors"
	"fmt"
	"math"

	"courier/regress/baseline"
	"courier/regress/evidence"
)

// method predicts the time of a run from the runs of a training set. All numbers are positions in
// the data of the comparison.
type method struct {
	name string
	fit  func(train []int) (predictRun, error)
}

type predictRun func(run int) (float64, error)

// allMethods returns the method of the advisor, the rule to beat, and what the paper compares: its
// forest for the time (ICPE 2021, table 7), with fewer trees.
func (c *heldOutComparison) allMethods(ctx context.Context) []method {
	options := baseline.ForestOptions{Trees: 200, MaxDepth: 6, Seed: 1, Log: true}
	forest := func(train *baseline.Dataset) (baseline.Predict, error) {
		return baseline.Forest(ctx, train, options)
	}
	return []method{
		{"courier", func(train []int) (predictRun, error) { return c.fitServed(ctx, train) }},
		{"mean of past runs", c.fitMean},
		{"random forest", c.baseline(forest)},
		{"linear model", c.baseline(baseline.Linear)},
		{"queueing law", c.baseline(baseline.Queueing)},
	}
}

// servedRuns returns the runs as the advisor learns from them. The table must have batch sizes and CPUs.
func (c *heldOutComparison) servedRuns() ([]evidence.Run, error) {
	batches, cpus := Numbers(c.table, Column(c.table, BatchSize)), Numbers(c.table,
		Column(c.table, CPUs))
	if batches == nil || cpus == nil {
		return nil, errors.New("the method needs columns batch_size and cpus")
	}
	jobs := Numbers(c.table, Column(c.table, Jobs))
	runs := make([]evidence.Run, len(c.rows))
	for i := range runs {
		if !(batches[i] >= 1 && batches[i] <= math.MaxInt32 && cpus[i] >= 1 &&
			cpus[i] <= math.MaxInt32) {
			return nil, fmt.Errorf("run %d has %g CPUs and a batch size of %g, want 1 or more",
				c.rows[i]+1, cpus[i], batches[i])
		}
		whole := evidence.EpochRecord{Number: 1, Seconds: c.data.Target[i]}
		r := evidence.Run{ID: fmt.Sprint(i), Epochs: []evidence.EpochRecord{whole}}
		r.Model, r.Dataset = c.cell(i, Model), c.cell(i, Dataset)
		r.BatchSize, r.CPUs = int(batches[i]), int(cpus[i])
		if jobs != nil && isNumber(jobs[i]) {
			r.ConcurrentJobs = jobs[i]
		}
		runs[i] = r
	}
	return runs, nil
}

// cell returns a cell of the column of a role; empty without the column.
func (c *heldOutComparison) cell(run int, role ColumnRole) string {
	k, err := c.table.Column(Column(c.table, role))
	if err != nil {
		return ""
	}
	return c.table.Rows[run][k]
}

func (c *heldOutComparison) fitServed(ctx context.Context, train []int) (predictRun, error) {
	runs, err := c.servedRuns()
	if err != nil {
		return nil, err
	}
	var known []evidence.Run
	for _, i := range train {
		known = append(known, runs[i])
	}
	h, err := evidence.Fit(ctx, known, evidence.Options{})
	if err != nil {
		return nil, err
	}
	p, err := evidence.Compile(h)
	if err != nil {
		return nil, err
	}
	return func(run int) (float64, error) {
		time := p.Time(runs[run].Configuration, 1)
		if !time.Known() {
			return 0, errors.New("a held-out configuration has no prediction")
		}
		return time.Median(), nil
	}, nil
}

// fitMean predicts the mean of the past runs of the configuration, or of all runs if it has none.
func (c *heldOutComparison) fitMean(train []int) (predictRun, error) {
	sums, counts := map[int]float64{}, map[int]float64{}
	sum := 0.0
	for _, i := range train {
		sums[c.groups[i]] += c.data.Target[i]
		counts[c.groups[i]]++
		sum += c.data.Target[i]
	}
	return func(run int) (float64, error) {
		if n := counts[c.groups[run]]; n > 0 {
			return sums[c.groups[run]] / n, nil
		}
		return sum / float64(len(train)), nil
	}, nil
}

func (c *heldOutComparison) baseline(
	fit func(*baseline.Dataset) (baseline.Predict, error),
) func(train []int) (predictRun, error) {
	return func(train []int) (predictRun, error) {
		predict, err := fit(c.data.Subset(train))
		if err != nil {
			return nil, err
		}
		return func(run int) (float64, error) { return predict(c.data.Rows[run]), nil }, nil
	}
}
