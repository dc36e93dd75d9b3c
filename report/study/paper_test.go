package study_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/regress/table"
	"courier/report/study"
)

const (
	recoveredRuns = "../../../shared/data/courier-paper/measured_runs.csv"
	paperTables   = "../../../shared/data/courier-paper/paper_tables.csv"
)

// read reads a table, or skips the test where it is absent.
func read(t *testing.T, path string) *table.Table {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skipf("%s is absent", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read, err := table.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// sorted returns the name of a term with sorted factors.
func sorted(term string) string {
	names := strings.Split(term, ":")
	slices.Sort(names)
	return strings.Join(names, ":")
}

// paperP returns the p values of the full factorial study (tables 3 and 13) by term.
func paperP(t *testing.T) map[string]float64 {
	all := map[string]float64{}
	for _, row := range read(t, paperTables).Rows {
		if row[0] != "13" || row[2] != "P>F" {
			continue
		}
		p, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		all[sorted(row[1])] = p
	}
	if len(all) != 15 {
		t.Fatalf("table 13 has %d terms, want 15", len(all))
	}
	return all
}

// The paper analysed 240 runs with slopes for all numbers and all interactions. About a third of
// them is known. Terms that are clear in the paper are clear in the known runs, terms without an
// effect have none, and the batch size has the largest effect.
func TestAnalyse_AgreesWithThePaper(t *testing.T) {
	paper, runs := paperP(t), read(t, recoveredRuns)
	if err := runs.Where(map[string]string{"time_suspect": "0"}); err != nil {
		t.Fatal(err)
	}
	s, err := study.Analyse(t.Context(), runs, study.Options{
		Responses:    []string{"time_s"},
		Factors:      []string{"network"},
		Covariates:   []string{"cpu", "batch", "njobs"},
		Interactions: []string{"4"},
		NoRegressors: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Analyses[0]
	if len(a.Terms) != len(paper) {
		t.Fatalf("%d terms, want %d", len(a.Terms), len(paper))
	}
	largest := a.Terms[0]
	for _, term := range a.Terms {
		if term.F > largest.F {
			largest = term
		}
		p, known := paper[sorted(term.Name)]
		switch {
		case !known:
			t.Errorf("the paper has no term %s", term.Name)
		case p < 1e-4 && term.P > 0.01:
			t.Errorf("%s has p %g, want at most 0.01; the paper has %g", term.Name, term.P, p)
		case p > 0.1 && term.P < 0.05:
			t.Errorf("%s has p %g, want 0.05 or more; the paper has %g", term.Name, term.P, p)
		}
	}
	if largest.Name != "batch" {
		t.Errorf("the largest effect is of %s, want batch", largest.Name)
	}
}

// The method of the product predicts the recovered runs better than the mean of past runs.
func TestAnalyse_ComparesRegressorsOfThePaper(t *testing.T) {
	runs := read(t, recoveredRuns)
	if err := runs.Where(map[string]string{"time_suspect": "0"}); err != nil {
		t.Fatal(err)
	}
	s, err := study.Analyse(t.Context(), runs, study.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	errors := map[string]float64{}
	for _, m := range s.Regressors.Unmeasured {
		if m.Error != "" {
			t.Errorf("%s: %s", m.Method, m.Error)
		}
		errors[m.Method] = m.Scores.MAPE.Value
	}
	if got, mean := errors["courier"], errors["mean of past runs"]; !(got < 0.06) ||
		got > mean {
		t.Errorf("MAPE %.3f, want below 0.06 and the %.3f of the mean of past runs", got, mean)
	}
}
