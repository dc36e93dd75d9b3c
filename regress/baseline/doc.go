// Package baseline fits simple regressors to compare with the served method, and scores
// predictions. It serves no request.
//
// # Use
//
//	predict, err := baseline.Linear(train)    // or Queueing, or Forest
//	predict(row)
//	baseline.Score(truth, predicted, groups, seed)
//
// Linear is the linear model of an analysis of variance, Queueing the queueing law of the ICPE 2021
// study, and Forest its random forest. A Dataset holds the examples; the caller decides which
// examples are held out.
//
// All functions are deterministic, do no I/O, and are safe for concurrent use.
package baseline

import (
	"fmt"
	"math"
)

// Feature is an input of a regressor. A category has Levels, and rows contain their indices; Levels
// is nil for a number.
type Feature struct {
	Name   string
	Levels []string
}

// Dataset is a set of examples. Each row has one finite number per feature, and one finite target.
type Dataset struct {
	Features []Feature
	Rows     [][]float64
	Target   []float64
}

// Subset returns the examples with the given numbers, in that order.
func (d *Dataset) Subset(examples []int) *Dataset {
	s := &Dataset{Features: d.Features}
	for _, i := range examples {
		s.Rows, s.Target = append(s.Rows, d.Rows[i]), append(s.Target, d.Target[i])
	}
	return s
}

// Validate returns an error that names the first invalid example.
func (d *Dataset) Validate() error {
	if len(d.Rows) == 0 || len(d.Rows) != len(d.Target) {
		return fmt.Errorf("%d rows and %d targets, want equal numbers of at least 1", len(d.Rows),
			len(d.Target))
	}
	for i, row := range d.Rows {
		if len(row) != len(d.Features) {
			return fmt.Errorf("example %d has %d values for %d features", i, len(row), len(d.Features))
		}
		if !isFinite(d.Target[i]) {
			return fmt.Errorf("target of example %d is %g", i, d.Target[i])
		}
		for f, x := range row {
			levels := d.Features[f].Levels
			isLevel := x == math.Trunc(x) && x >= 0 && x < float64(len(levels))
			if !isFinite(x) || levels != nil && !isLevel {
				return fmt.Errorf("feature %s of example %d is %g", d.Features[f].Name, i, x)
			}
		}
	}
	return nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Predict returns a prediction for a row, in the unit of the target.
type Predict func(row []float64) float64
