package anova_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"courier/regress/anova"
	"courier/regress/table"
)

// noise returns random numbers.
func noise(n int) []float64 {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]float64, n)
	for i := range all {
		all[i] = random.NormFloat64()
	}
	return all
}

// factor returns a factor whose levels follow each other, each for some runs.
func factor(name string, runs, levels, each int) anova.Variable {
	v := anova.Variable{Name: name}
	for i := range levels {
		v.Levels = append(v.Levels, fmt.Sprint(i))
	}
	for i := range runs {
		v.Values = append(v.Values, float64(i/each%levels))
	}
	return v
}

// with returns values with another one at a position.
func with(values []float64, at int, x float64) []float64 {
	values[at] = x
	return values
}

func TestFit_Refuses(t *testing.T) {
	sum := anova.Variable{Name: "sum", Values: make([]float64, 24)}
	for i := range sum.Values {
		sum.Values[i] = float64(i%2) + 3*float64(i/2%3)
	}
	a, b := factor("a", 24, 2, 1), factor("b", 24, 3, 2)

	var manyTerms, manyFactors []anova.Variable
	var names []string
	for i := range 8 {
		v := factor(fmt.Sprint("f", i), 300, 2, 1<<i)
		manyTerms, names = append(manyTerms, v), append(names, v.Name)
	}
	for i := range anova.MaxTerms + 1 {
		manyFactors = append(manyFactors, anova.Variable{Name: fmt.Sprint(i), Values: noise(300)})
	}
	effort := []anova.Variable{factor("most", anova.MaxRuns, 60, 1)}
	for i := range 60 {
		name := fmt.Sprint("f", i)
		effort = append(effort, factor(name, anova.MaxRuns, 2, i+1))
	}
	for _, c := range []struct {
		name   string
		design anova.Design
		want   string
	}{
		{"squares beyond the range",
			anova.Design{Y: with(noise(24), 0, 1e200), Variables: []anova.Variable{a}},
			"its squares exceed the range of numbers"},
		{"squares that vanish",
			anova.Design{Y: with(make([]float64, 24), 0, 1e-200), Variables: []anova.Variable{a}},
			"its squares exceed the range of numbers"},
		{"covariate whose squares vanish",
			anova.Design{Y: noise(24), Variables: []anova.Variable{
				{Name: "x", Values: with(make([]float64, 24), 0, 1e-200)},
			}},
			"covariate x is between 0 and 1e-200: its squares exceed the range of numbers"},
		{"two names of a column",
			anova.Design{Y: noise(24), Variables: []anova.Variable{a, a}},
			"a is named twice, want each column once"},
		{"equal columns",
			anova.Design{Y: noise(24), Variables: []anova.Variable{a, factor("c", 24, 2, 1)}},
			"a cannot be separated from the other terms"},
		{"covariate that is a sum of factors",
			anova.Design{Y: noise(24), Variables: []anova.Variable{a, b, sum}},
			"cannot be separated from the other terms"},
		{"more parameters than runs",
			anova.Design{Y: noise(6), Variables: []anova.Variable{
				factor("a", 6, 4, 1), factor("b", 6, 3, 2),
			}, Interactions: [][]string{{"a", "b"}}},
			"no residual degrees of freedom: the model has 12 parameters for 6 runs"},
		{"too many levels",
			anova.Design{Y: noise(300), Variables: []anova.Variable{
				factor("a", 300, anova.MaxLevels+1, 1),
			}},
			"factor a has 61 levels, want at most 60"},
		{"too many parameters",
			anova.Design{Y: noise(300), Variables: []anova.Variable{
				factor("a", 300, 20, 1), factor("b", 300, 15, 20),
			}, Interactions: [][]string{{"a", "b"}}},
			"the model is too large: it has over 200 parameters; use fewer interactions"},
		{"too many terms",
			anova.Design{Y: noise(300), Variables: manyTerms, Interactions: [][]string{names}},
			"the model is too large: it has over 100 terms; use fewer interactions"},
		{"too many factors",
			anova.Design{Y: noise(300), Variables: manyFactors},
			"there are 101 factors, want at most 100"},
		{"too many runs",
			anova.Design{Y: noise(anova.MaxRuns + 1), Variables: []anova.Variable{
				factor("a", anova.MaxRuns+1, 2, 1),
			}},
			"y has 10001 runs, want at most 10000"},
		{"too much effort",
			anova.Design{Y: noise(anova.MaxRuns), Variables: effort},
			" parameters for 10000 runs; use fewer interactions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.design.Response = "y"
			_, err := anova.Fit(c.design)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Values that are not finite are refused with their row; rows are not lost silently.
func TestFromTable_RefusesWhatIsNoNumber(t *testing.T) {
	for _, c := range []struct{ cells, want string }{
		{"NaN,a", `y of row 2 is "NaN", want a finite number`},
		{"+Inf,a", `y of row 2 is "+Inf", want a finite number`},
		{"1e999,a", `y of row 2 is "1e999", want a finite number`},
		{"fast,a", `y of row 2 is "fast", want a finite number`},
		{"1,nan", `a of row 2 is "nan", want a level`},
	} {
		runs, err := table.Read(strings.NewReader("y,a\n1,a\n" + c.cells + "\n3,b\n2,b\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = anova.FromTable(runs, anova.ColumnChoice{Response: "y", Factors: []string{"a"}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.cells, err, c.want)
		}
	}
}

// A factor with a level per run is refused before a matrix is made for it.
func TestFit_RefusesManyLevelsInLittleMemory(t *testing.T) {
	runs := &table.Table{Header: []string{"y", "a", "b"}}
	for i := range anova.MaxRuns {
		cell := fmt.Sprint(i)
		runs.Rows = append(runs.Rows, []string{cell, cell, cell})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := anova.FromTable(runs, anova.ColumnChoice{
		Response: "y",
		Factors:  []string{"a", "b"},
		Order:    2,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = anova.Fit(d.Design)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "factor a has 10000 levels, want at most 60") {
		t.Errorf("error %v, want one about 10000 levels", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes are allocated, want at most 32 MiB", used)
	}
}
