package main

import (
	"fmt"
	"io"

	"courier/regress/table"
	"courier/report"
)

type regressorCompare struct {
	examplesFlags
	outputFlags
	A          string   `arg:"" help:"Directory of a regressor."`
	B          string   `arg:"" help:"Directory of another regressor of the same target."`
	Group      []string `help:"Columns of a configuration (default: all features of both)." placeholder:"COLUMN"`
	Confidence float64  `help:"Confidence of the upper bounds, between 0 and 1." default:"0.9"`
}

// Help returns the examples of courier regressor compare.
func (c *regressorCompare) Help() string {
	return `Example:
  courier regressor compare --examples later.csv old new`
}

func (c *regressorCompare) Run(w *environment) error {
	if err := checkConfidence(c.Confidence); err != nil {
		return err
	}
	a, err := loadRegressor(c.A)
	if err != nil {
		return err
	}
	b, err := loadRegressor(c.B)
	if err != nil {
		return err
	}
	if ta, tb := a.Manifest().Target, b.Manifest().Target; ta != tb {
		return fmt.Errorf("%s predicts %s, %s predicts %s", c.A, ta, c.B, tb)
	}
	t, err := c.read()
	if err != nil {
		return err
	}
	r, err := t.Compare(a, b, table.CompareOptions{
		Names:      [2]string{c.A, c.B},
		Group:      c.Group,
		Confidence: c.Confidence,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Examples, err)
	}
	return c.print(w.stdout, r, func(out io.Writer) error { return report.Comparison(out, r) })
}
