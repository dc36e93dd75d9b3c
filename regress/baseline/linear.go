package baseline

import (
	"math"
	"slices"

	"courier/regress/leastsquares"

	"gonum.org/v1/gonum/stat"
)

// Linear fits the linear model of an analysis of variance by least squares: the features with all
// interactions, or without interactions if there would be more than half as many coefficients as
// examples.
func Linear(train *Dataset) (Predict, error) {
	if err := train.Validate(); err != nil {
		return nil, err
	}
	m := newLinearModel(train)
	m.interactions = 2*m.width(true) <= len(train.Rows)
	rows := make([][]float64, len(train.Rows))
	for i, row := range train.Rows {
		rows[i] = m.inputs(row)
	}
	c := leastsquares.Fit(rows, train.Target)
	return func(row []float64) float64 { return leastsquares.Predict(c, m.inputs(row)) }, nil
}

// linearModel computes the inputs of a linear function from a row. A number becomes one input,
// scaled to mean 0 and deviation 1; a category becomes an indicator for each of its levels among
// the examples except the first. A feature without variation has no input.
type linearModel struct {
	columns      []linearColumn
	interactions bool
}

type linearColumn struct {
	feature     int
	levels      []float64 // with an indicator; nil for a number
	mean, width float64
}

func newLinearModel(d *Dataset) *linearModel {
	m := &linearModel{}
	for f, feature := range d.Features {
		values := make([]float64, len(d.Rows))
		for i, row := range d.Rows {
			values[i] = row[f]
		}
		c := linearColumn{feature: f}
		if c.mean, c.width = stat.PopMeanStdDev(values, nil); !(c.width > 0) {
			continue
		}
		if feature.Levels != nil {
			c.levels = slices.Compact(slices.Sorted(slices.Values(values)))[1:]
		}
		m.columns = append(m.columns, c)
	}
	return m
}

// width returns the number of inputs, including the constant.
func (m *linearModel) width(interactions bool) int {
	sum, product := 1, 1
	for _, c := range m.columns {
		n := max(1, len(c.levels))
		sum += n
		product = min(product*(1+n), math.MaxInt32)
	}
	if interactions {
		return product
	}
	return sum
}

// inputs returns the inputs of a row, the first of them constant.
func (m *linearModel) inputs(row []float64) []float64 {
	all := make([]float64, 1, m.width(m.interactions))
	all[0] = 1
	for _, c := range m.columns {
		before := all[:1]
		if m.interactions {
			before = all
		}
		for _, x := range c.inputs(row[c.feature]) {
			for _, b := range before {
				all = append(all, b*x)
			}
		}
	}
	return all
}

func (c *linearColumn) inputs(x float64) []float64 {
	if c.levels == nil {
		return []float64{(x - c.mean) / c.width}
	}
	indicators := make([]float64, len(c.levels))
	if i := slices.Index(c.levels, x); i >= 0 {
		indicators[i] = 1
	}
	return indicators
}
