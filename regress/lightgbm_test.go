package regress_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/regress"
)

// python returns a Python interpreter with LightGBM: the one that COURIER_TEST_PYTHON
// names, or the first in PATH. Without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("COURIER_TEST_PYTHON")
	if name == "" {
		name = "python3"
	}
	if err := exec.Command(name, "testdata/lightgbm/predict.py").Run(); err != nil {
		t.Skipf("LightGBM's Python package cannot be asked: %s: %v (COURIER_TEST_PYTHON may name a Python that has it)",
			name, err)
	}
	return name
}

// LightGBM reads the files and gives the same predictions.
func TestEncodeModel_IsReadByLightGBM(t *testing.T) {
	interpreter := python(t)
	bound := paperLike(288, 1)
	bound.Features[0].Monotone = -1
	single := paperLike(96, 1)
	single.Features, single.Columns = single.Features[:1], single.Columns[:1]
	constant := paperLike(96, 1)
	for i := range constant.Target {
		constant.Target[i] = 12.5
	}
	fits := map[string]func() (*regress.Regressor, error){
		"single feature": func() (*regress.Regressor, error) {
			return regress.FitForest(context.Background(), single, regress.ForestOptions{
				Trees:     10,
				MaxDepth:  6,
				Bootstrap: true,
				Folds:     -1,
			})
		},
		"one leaf": func() (*regress.Regressor, error) {
			return regress.FitBoosting(context.Background(), constant, regress.BoostingOptions{
				Trees: 10,
				Folds: -1,
			})
		},
	}
	for _, c := range []regress.Criterion{
		regress.Squared, regress.Absolute, regress.Huber, regress.Quantile,
	} {
		o := regress.BoostingOptions{Trees: 20, Leaves: 12, Criterion: c, Folds: -1}
		if c == regress.Quantile {
			o.Level = 0.9
		}
		fits["boosting "+string(c)] = func() (*regress.Regressor, error) {
			return regress.FitBoosting(context.Background(), bound, o)
		}
	}
	for _, c := range []regress.Criterion{regress.Squared, regress.Absolute} {
		o := regress.ForestOptions{Trees: 20, MaxDepth: 8, Criterion: c, Bootstrap: true, Folds: -1}
		fits["forest "+string(c)] = func() (*regress.Regressor, error) {
			return regress.FitForest(context.Background(), bound, o)
		}
	}
	rows, text := bound.Len(), &strings.Builder{}
	for i := range rows {
		row := bound.Row(i, nil)
		fmt.Fprintf(text, "%v,%v,%v,%v,%v\n", row[0], row[1]+0.5, row[2], row[3], row[4])
	}
	folder, arguments := t.TempDir(), []string{"testdata/lightgbm/predict.py"}
	var predictors []*regress.Predictor
	for name, fit := range fits {
		r, err := fit()
		if err != nil {
			t.Fatal(err)
		}
		p, err := regress.Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		predictors = append(predictors, p)
		arguments = append(arguments, filepath.Join(folder, name+".txt"))
		if err := os.WriteFile(arguments[len(arguments)-1], r.EncodeModel(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(interpreter, arguments...)
	command.Stdin, command.Stderr = strings.NewReader(text.String()), os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("LightGBM cannot read the file: %v", err)
	}
	lines := strings.Fields(string(output))
	if len(lines) != rows*len(predictors) {
		t.Fatalf("LightGBM predicts %d rows, want %d", len(lines), rows*len(predictors))
	}
	for k, line := range lines {
		p, name := predictors[k/rows], filepath.Base(arguments[1+k/rows])
		row := bound.Row(k%rows, nil)
		row[1] += 0.5
		got, err := p.Predict(row[:len(p.Features())])
		if err != nil {
			t.Fatal(err)
		}
		if want, err := strconv.ParseFloat(line, 64); err != nil ||
			math.Abs(got.Value-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s, row %d: Predict = %v, LightGBM predicts %s", name, k%rows, got.Value, line)
		}
	}
}
