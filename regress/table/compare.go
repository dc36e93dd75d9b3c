package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"courier/regress"
)

// CompareOptions determine how two regressors are compared.
type CompareOptions struct {
	Names      [2]string // of the regressors
	Group      []string  // columns of a configuration; none: all features of both
	Confidence float64   // of the upper bounds, between 0 and 1
}

// Comparison is the outcome of Compare.
type Comparison struct {
	Regressors [2]Compared      `json:"regressors"`
	Pinball    regress.Estimate `json:"pinball_difference"` // loss of the first less that of the second
	Confidence float64          `json:"confidence"`
	Verdict    string           `json:"verdict"`
}

// Compared is one of two compared regressors.
type Compared struct {
	Name     string           `json:"name"`
	Family   string           `json:"family"`
	Scores   regress.Scores   `json:"scores"`
	Coverage regress.Coverage `json:"coverage"`
	// Extrapolated is the share of examples outside the support of the regressor, and Between the
	// share of the others between its levels.
	Extrapolated float64   `json:"extrapolated_ratio"`
	Between      float64   `json:"between_ratio"`
	losses       []float64 // pinball loss of each bound
}

// Compare compares two regressors of the same target on the rows that have a target. It removes
// the other rows.
func (t *Table) Compare(a, b *regress.Predictor, o CompareOptions) (*Comparison, error) {
	truth, group, err := t.truths(a, b, o.Group)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Confidence: o.Confidence, Verdict: "the difference may be chance"}
	for i, p := range []*regress.Predictor{a, b} {
		if c.Regressors[i], err = t.scores(p, truth, group, o.Confidence); err != nil {
			return nil, err
		}
		c.Regressors[i].Name = o.Names[i]
	}
	c.Pinball, err = regress.Paired(c.Regressors[0].losses, c.Regressors[1].losses, group, 1)
	switch {
	case c.Pinball.High < 0:
		c.Verdict = o.Names[0] + " is better"
	case c.Pinball.Low > 0:
		c.Verdict = o.Names[1] + " is better"
	}
	return c, err
}

// truths returns the target and the group of each row that has a target.
func (t *Table) truths(a, b *regress.Predictor, names []string) ([]float64, []int, error) {
	target, err := t.Column(a.Manifest().Target)
	if err != nil {
		return nil, nil, err
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool {
		return math.IsNaN(Number(row[target]))
	})
	if len(t.Rows) == 0 {
		return nil, nil, fmt.Errorf("no example has a %s", a.Manifest().Target)
	}
	var truth []float64
	for _, row := range t.Rows {
		truth = append(truth, Number(row[target]))
	}
	if len(names) == 0 {
		for _, f := range slices.Concat(a.Features(), b.Features()) {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	group, err := t.Groups(names)
	return truth, group, err
}

func (t *Table) scores(
	p *regress.Predictor, truth []float64, group []int, confidence float64,
) (Compared, error) {
	c := Compared{Family: p.Manifest().Family}
	rows, err := t.RowsFor(p)
	if err != nil {
		return c, err
	}
	var points, bounds []float64
	for i, row := range rows {
		point, err := p.Predict(row)
		if err != nil {
			return c, err
		}
		bound, _ := p.UpperBound(point, confidence)
		points, bounds = append(points, point.Value), append(bounds, bound)
		switch Extrapolation(point) {
		case "true":
			c.Extrapolated += 1 / float64(len(rows))
		case "between":
			c.Between += 1 / float64(len(rows))
		}
		if math.IsInf(bound, 0) {
			bound = point.Value // Without a bound the prediction is scored as one.
		}
		c.losses = append(c.losses, regress.Pinball(truth[i:i+1], []float64{bound}, confidence))
	}
	c.Scores = regress.Score(truth, points, group, 1)
	c.Coverage = regress.Cover(truth, points, bounds, confidence)
	return c, nil
}

// Extrapolation returns "true" for a prediction outside the support, for which there is no promise,
// "between" for one between measured levels, and else "false".
func Extrapolation(point regress.Prediction) string {
	if point.Between && !point.Extrapolated {
		return "between"
	}
	return strconv.FormatBool(point.Extrapolated)
}
