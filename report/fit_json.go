package report

import (
	"encoding/json"
	"io"
	"math"

	"courier/regress"
)

// WriteJSON writes the report as JSON.
func (f *Fit) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		regress.SelectReport
		Dropped []regress.Dropped  `json:"dropped,omitempty"`
		Empty   int                `json:"rows_without_target"`
		Served  *regress.Scores    `json:"scores_of_the_served"`
		Cover   []regress.Coverage `json:"coverage_of_the_served"`
		Grid    []gridPoint        `json:"grid,omitempty"`
	}{
		f.Report,
		f.Dropped,
		f.RowsWithoutTarget,
		f.Regressor.Manifest.Scores,
		f.Regressor.Manifest.Coverage,
		gridPoints(f.Grid),
	})
}

// gridPoint is a grid point as JSON; Estimate encodes NaN.
type gridPoint struct {
	Options regress.ForestOptions `json:"options"`
	MSE     regress.Estimate      `json:"mse"`
	R2      regress.Estimate      `json:"r2"`
	MAPE    regress.Estimate      `json:"mape"`
}

func gridPoints(points []regress.GridPoint) []gridPoint {
	point := func(v float64) regress.Estimate {
		return regress.Estimate{Value: v, Low: math.NaN(), High: math.NaN()}
	}
	var all []gridPoint
	for _, p := range points {
		all = append(all, gridPoint{p.Options, point(p.MSE), point(p.R2), point(p.MAPE)})
	}
	return all
}
