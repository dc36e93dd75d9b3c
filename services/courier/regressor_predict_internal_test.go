package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"

	"courier/regress/table"
)

// The last column distinguishes measured levels, interpolation and extrapolation. The upper bound
// is wider for the latter two.
func TestRegressorPredict_ReportsExtrapolation(t *testing.T) {
	header := []string{"batch", "cpu", "njobs", "network", "s"}
	files := fitTable(t, header, studyLike(aboutTheStudy), "--target", "s", "--features",
		"batch,cpu,njobs,network", "--family", "law")
	dir := t.TempDir()
	for _, name := range []string{modelFile, manifestFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ask := filepath.Join(dir, "ask.csv")
	if err := os.WriteFile(ask,
		[]byte("batch,cpu,njobs,network\n128,2,1,lenet5\n180,2,1,lenet5\n128,3,2,lenet5\n"+
			"1024,3,1,lenet5\n128,2,1,resnet\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	if err := run(context.Background(), []string{
		"regressor", "predict", "--regressor", dir, "--examples", ask,
	}, os.Getenv, &told, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&told).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	ratio := func(row []string) float64 { return table.Number(row[5]) / table.Number(row[4]) }
	for i, want := range []string{"extrapolated", "false", "between", "between", "true", "true"} {
		if got := rows[i][7]; got != want {
			t.Errorf("row %d is %q: %q, want %q", i, rows[i], got, want)
		}
		if i > 1 && !(ratio(rows[i]) > ratio(rows[1])) {
			t.Errorf("row %q has a bound no wider than %q", rows[i], rows[1])
		}
	}
}
