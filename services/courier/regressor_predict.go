package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"courier/regress"
	"courier/regress/table"
)

type regressorPredict struct {
	examplesFlags
	Regressor  string  `help:"Directory of the regressor." required:"" type:"path" placeholder:"DIR"`
	SLO        float64 `name:"slo" help:"Also add the probability that the target is at most this value, in the unit of the target." placeholder:"SECONDS"`
	Confidence float64 `help:"Confidence of the upper bound, between 0 and 1." default:"0.9"`
	Out        string  `help:"File to write; - is standard output." default:"-" placeholder:"FILE"`
}

// Help returns the examples of courier regressor predict.
func (c *regressorPredict) Help() string {
	return `Example:
  courier regressor predict --regressor fitted --examples new.csv --slo 120 --out predicted.csv`
}

// addedColumns are the columns that predict adds.
var addedColumns = []string{"prediction", "upper_bound", "probability", "extrapolated"}

func (c *regressorPredict) Run(w *environment) error {
	if err := checkConfidence(c.Confidence); err != nil {
		return err
	}
	if math.IsNaN(c.SLO) || c.SLO < 0 {
		return fmt.Errorf("slo is %g, want a number above 0", c.SLO)
	}
	p, err := loadRegressor(c.Regressor)
	if err != nil {
		return err
	}
	t, err := c.read()
	if err != nil {
		return err
	}
	for _, name := range addedColumns {
		if slices.Contains(t.Header, name) {
			return fmt.Errorf("%s: the column %s exists already", c.Examples, name)
		}
	}
	rows, err := t.RowsFor(p)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	return writeOut(w, c.Out, func(out io.Writer) error { return c.write(out, p, t, rows) })
}

func (c *regressorPredict) write(
	out io.Writer, p *regress.Predictor, t *table.Table, rows [][]float64,
) error {
	lines := csv.NewWriter(out)
	if err := lines.Write(append(slices.Clone(t.Header), addedColumns...)); err != nil {
		return err
	}
	for i, row := range rows {
		point, err := p.Predict(row)
		if err != nil {
			return fmt.Errorf("%s: example %d: %w", c.Examples, i+1, err)
		}
		bound, probability := "", ""
		if b, _ := p.UpperBound(point, c.Confidence); !math.IsInf(b, 0) {
			bound = nineDigits(b)
		}
		if c.SLO > 0 && p.Manifest().Calibration.Count > 0 {
			chance, _ := p.Probability(point, c.SLO)
			probability = nineDigits(chance)
		}
		cells := append(slices.Clone(t.Rows[i]),
			nineDigits(point.Value), bound, probability, table.Extrapolation(point))
		if err := lines.Write(cells); err != nil {
			return err
		}
	}
	lines.Flush()
	return lines.Error()
}

func nineDigits(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }
