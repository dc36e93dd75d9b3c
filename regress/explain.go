package regress

import (
	"fmt"
	"math"
	"slices"
)

// mostExplained is how many examples an explanation looks at.
const mostExplained = 500

// Importance tells how much the predictions hang on each feature: by how much
// the logarithm (or, without Log, the value) changes in the mean when the
// feature is shuffled among the examples (Breiman 2001), as shares that sum to 1,
// or zeros where nothing changes anything. An error wraps ErrBadRow.
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

// spreadRows are at most mostExplained examples, evenly spread.
func spreadRows(n int) []int {
	step := (n + mostExplained - 1) / mostExplained
	var rows []int
	for i := 0; i < n; i += max(step, 1) {
		rows = append(rows, i)
	}
	return rows
}

// PartialDependence is the mean prediction over the examples when a feature is
// set to each of some values (Friedman 2001), in the unit of the target; under
// Log the geometric mean. An error wraps ErrBadRow.
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
