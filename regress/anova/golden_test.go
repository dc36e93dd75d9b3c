package anova_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"courier/regress/anova"
	"courier/regress/table"
)

// goldenCase has the figures of statsmodels for a design.
type goldenCase struct {
	Name            string                `json:"name"`
	Columns         map[string][]any      `json:"columns"`
	Factors         []string              `json:"factors"`
	Covariates      []string              `json:"covariates"`
	Interactions    []string              `json:"interactions"`
	ResidualSquares float64               `json:"residual_squares"`
	ResidualDegrees int                   `json:"residual_degrees"`
	R2              float64               `json:"r2"`
	AdjustedR2      float64               `json:"adjusted_r2"`
	Terms           map[string]anova.Term `json:"terms"`
	Normality       anova.Normality       `json:"normality"`
	Variances       map[string]anova.LevelTest
	Means           map[string][]anova.MeanPoint
}

func goldenCases(t *testing.T) []goldenCase {
	data, err := os.ReadFile("testdata/statsmodels.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden.Cases
}

// table returns the columns as a table of cells.
func (c *goldenCase) table() *table.Table {
	t := &table.Table{}
	for name, values := range c.Columns {
		t.Header = append(t.Header, name)
		for i, x := range values {
			if len(t.Rows) <= i {
				t.Rows = append(t.Rows, nil)
			}
			cell, isText := x.(string)
			if !isText {
				cell = fmt.Sprintf("%.17g", x)
			}
			t.Rows[i] = append(t.Rows[i], cell)
		}
	}
	return t
}

func (c *goldenCase) fit(t *testing.T) *anova.VarianceAnalysis {
	d, err := anova.FromTable(c.table(), anova.ColumnChoice{
		Response:     "y",
		Factors:      c.Factors,
		Covariates:   c.Covariates,
		Interactions: c.Interactions,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := anova.Fit(d.Design)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tolerance is the allowed relative difference from statsmodels.
const tolerance = 1e-6

func near(got, want float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), 1e-300)
}

func sortedName(name string) string {
	names := strings.Split(name, ":")
	slices.Sort(names)
	return strings.Join(names, ":")
}

func TestFit_AgreesWithStatsmodels(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := c.fit(t)
			compare := func(name string, got, want float64) {
				if !near(got, want) {
					t.Errorf("%s is %.12g, want %.12g", name, got, want)
				}
			}
			compare("residual squares", r.ResidualSquares, c.ResidualSquares)
			compare("R2", r.R2, c.R2)
			compare("adjusted R2", r.AdjustedR2, c.AdjustedR2)
			compare("W", r.Normality.W, c.Normality.W)
			compare("p of W", r.Normality.P, c.Normality.P)
			if r.ResidualDegrees != c.ResidualDegrees || len(r.Terms) != len(c.Terms) {
				t.Fatalf("%d residual degrees, %d terms, want %d, %d", r.ResidualDegrees,
					len(r.Terms), c.ResidualDegrees, len(c.Terms))
			}
			for _, got := range r.Terms {
				compareTerm(compare, got, c.Terms[sortedName(got.Name)])
			}
			compareTests(t, compare, "variance of ", r.Variances, c.Variances)
			compareMeans(t, compare, r.Means, c.Means)
		})
	}
}

func compareTerm(compare func(string, float64, float64), got, want anova.Term) {
	compare(got.Name+" degrees", float64(got.Degrees), float64(want.Degrees))
	compare(got.Name+" squares", got.Squares, want.Squares)
	compare(got.Name+" F", got.F, want.F)
	compare(got.Name+" p", got.P, want.P)
	compare(got.Name+" eta2", got.PartialEta2, want.PartialEta2)
	compare(got.Name+" effect low", got.EffectLow, want.EffectLow)
	compare(got.Name+" effect high", got.EffectHigh, want.EffectHigh)
	compare(got.Name+" omega2", got.PartialOmega2, want.PartialOmega2)
	compare(got.Name+" whole omega2", got.Omega2, want.Omega2)
}

func compareTests(
	t *testing.T, compare func(string, float64, float64), what string, got []anova.LevelTest,
	want map[string]anova.LevelTest,
) {
	if len(got) != len(want) {
		t.Errorf("%s%d factors, want %d", what, len(got), len(want))
	}
	for _, g := range got {
		compare(what+g.Factor, g.Statistic, want[g.Factor].Statistic)
		compare("p of "+what+g.Factor, g.P, want[g.Factor].P)
	}
}

func compareMeans(
	t *testing.T, compare func(string, float64, float64), got []anova.Means,
	want map[string][]anova.MeanPoint,
) {
	compared := 0
	for _, g := range got {
		points, known := want[g.Term]
		if !known {
			continue
		}
		compared++
		if len(points) != len(g.Values) {
			t.Errorf("%s has %d means, want %d", g.Term, len(g.Values), len(points))
			continue
		}
		for _, p := range g.Values {
			name := g.Term + " at " + strings.Join(p.Levels, ", ")
			i := slices.IndexFunc(points, func(q anova.MeanPoint) bool {
				return slices.Equal(p.Levels, q.Levels)
			})
			if i < 0 {
				t.Fatalf("there is no golden mean of %s", name)
			}
			compare("mean of "+name, p.Mean, points[i].Mean)
			compare("low of "+name, p.Low, points[i].Low)
			compare("high of "+name, p.High, points[i].High)
		}
	}
	if compared != len(want) {
		t.Errorf("%d terms have means, want %d", compared, len(want))
	}
}
