package table

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"courier/regress"
)

// Columns name the columns of a table that make a dataset.
type Columns struct {
	Target     string // rows without a value are left out
	Unit       string // of the target; durations must be above 0, ratios between 0 and 1
	Features   []string
	Categories []string       // features that are categories although they are numbers
	Monotone   map[string]int // 1: the target never falls as the feature grows; -1: it never rises
	Group      []string       // rows of a group are never split; none: the features
	Weight     string         // of each example; empty: 1
	Log        bool           // the target must have a logarithm
}

// CleanExamples are the clean examples of a table.
type CleanExamples struct {
	Data              *regress.Dataset
	Dropped           []regress.Dropped
	RowsWithoutTarget int
}

// Dataset returns the examples of the rows that have a target. It removes the other rows.
func (t *Table) Dataset(c Columns) (*CleanExamples, error) {
	target, err := t.Column(c.Target)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	before := len(t.Rows)
	t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool {
		return strings.TrimSpace(row[target]) == ""
	})
	e := &CleanExamples{RowsWithoutTarget: before - len(t.Rows)}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("no row has a %s", c.Target)
	}

	d := &regress.Dataset{TargetName: c.Target, TargetUnit: c.Unit}
	for _, row := range t.Rows {
		d.Target = append(d.Target, Number(row[target]))
	}
	if err := t.addFeatures(d, c); err != nil {
		return nil, err
	}
	if d.Group, err = t.Groups(c.Group); err != nil {
		return nil, err
	}
	if c.Weight != "" {
		if d.Weight, err = t.Values(regress.Feature{Name: c.Weight}); err != nil {
			return nil, fmt.Errorf("weight: %w", err)
		}
	}
	low, high := c.targetRange()
	e.Data, e.Dropped, err = d.Clean(low, high)
	return e, err
}

func (t *Table) addFeatures(d *regress.Dataset, c Columns) error {
	for name := range c.Monotone {
		if !slices.Contains(c.Features, name) {
			return fmt.Errorf("monotone: %s is not a feature", name)
		}
	}
	for _, name := range c.Features {
		if name == c.Target {
			return fmt.Errorf("features: %s is the target", name)
		}
		feature, err := t.Feature(name, slices.Contains(c.Categories, name))
		if err != nil {
			return fmt.Errorf("features: %w", err)
		}
		feature.Monotone = c.Monotone[name]
		values, err := t.Values(feature)
		if err != nil {
			return fmt.Errorf("features: %w", err)
		}
		d.Features, d.Columns = append(d.Features, feature), append(d.Columns, values)
	}
	return nil
}

var durationUnits = []string{
	"s", "seconds", "ms", "us", "ns", "min", "minutes", "h", "hours",
}

// targetRange returns the smallest and the largest valid target.
func (c *Columns) targetRange() (low, high float64) {
	switch {
	case c.Log || slices.Contains(durationUnits, c.Unit):
		return math.SmallestNonzeroFloat64, math.MaxFloat64
	case c.Unit == "ratio":
		return 0, 1
	}
	return -math.MaxFloat64, math.MaxFloat64
}

// RowsFor returns a row of features for each row of the table. Levels that the regressor does not
// know are -1, for which it answers with an extrapolation.
func (t *Table) RowsFor(p *regress.Predictor) ([][]float64, error) {
	rows := make([][]float64, len(t.Rows))
	for _, f := range p.Features() {
		values, err := t.Values(f)
		if err != nil {
			return nil, err
		}
		k, err := t.Column(f.Name)
		if err != nil {
			return nil, err
		}
		for i, x := range values {
			if f.Levels != nil && math.IsNaN(x) && strings.TrimSpace(t.Rows[i][k]) != "" {
				x = -1
			}
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("example %d: feature %s is %q, want %s",
					i+1, f.Name, t.Rows[i][k], validValues(f))
			}
			rows[i] = append(rows[i], x)
		}
	}
	return rows, nil
}

func validValues(f regress.Feature) string {
	if f.Levels != nil {
		return "one of " + strings.Join(f.Levels, ", ")
	}
	return "a number"
}
