package regress_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
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

// lightgbmRows reads the features of rows.csv and what LightGBM predicted.
func lightgbmRows(t testing.TB) (rows [][]float64, predicted map[string][]float64) {
	t.Helper()
	text, err := os.ReadFile("testdata/lightgbm/rows.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	predicted = make(map[string][]float64)
	for _, line := range lines[1:] {
		row := make([]float64, len(line))
		for i, entry := range line {
			if row[i], err = strconv.ParseFloat(entry, 64); err != nil {
				t.Fatal(err)
			}
			if i >= 4 {
				predicted[lines[0][i]] = append(predicted[lines[0][i]], row[i])
			}
		}
		rows = append(rows, row[:4])
	}
	return rows, predicted
}

// What LightGBM wrote predicts here what it predicts there, as it is and after
// we wrote it ourselves and read it with all checks.
func TestReadLightGBM_PredictsAsLightGBM(t *testing.T) {
	rows, predicted := lightgbmRows(t)
	if len(rows) != 60 || len(predicted) != 7 {
		t.Fatalf("%d rows of %d regressors, want 60 of 7", len(rows), len(predicted))
	}
	for name, want := range predicted {
		model, err := os.ReadFile("testdata/lightgbm/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		r, err := regress.ReadLightGBM(model, "y", "s")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read, err := regress.Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		ours, manifest := encode(t, r)
		loaded, err := regress.Load(ours, manifest)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			for _, p := range []*regress.Predictor{read, loaded} {
				got, err := p.Predict(row)
				if err != nil || math.Abs(got.Value-want[i]) > 1e-12*math.Abs(want[i]) {
					t.Errorf("%s, row %d: Predict = %v, %v, LightGBM says %v", name, i, got.Value, err, want[i])
				}
			}
		}
	}
}

func TestReadLightGBM_NamesLineAndField(t *testing.T) {
	model, err := os.ReadFile("testdata/lightgbm/monotone.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, says string }{
		{"another version", "version=v4", "version=v5", `line 2: version "v5"`},
		{"classes", "num_class=1", "num_class=2", "line 3"},
		{"features", "max_feature_idx=3", "max_feature_idx=2", "max_feature_idx"},
		{"a link", "objective=regression", "objective=poisson", `line 7: objective "poisson"`},
		{"a square root", "objective=regression\n", "objective=regression sqrt\n", "line 7: objective"},
		{"a blank in a name", "feature_names=batch_size", "feature_names=batch size", "line"},
		{"a name twice", "batch_size angle", "angle angle", "used twice"},
		{"a sign", "monotone_constraints=-1", "monotone_constraints=-2", "monotone_constraints, entry 0"},
		{"a category", "[64:512]", "1:2:3", "feature_infos, entry 0"},
		{"a range upside down", "[64:512]", "[512:64]", "feature_infos, entry 0"},
		{"an endless range", "[64:512]", "[64:inf]", "feature_infos, entry 0"},
		{"a cycle", "left_child=-1", "left_child=0", "used twice"},
		{"cut off", "end of parameters", "", "end of parameters"},
	} {
		changed := strings.Replace(string(model), c.old, c.new, 1)
		if changed == string(model) {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		_, err := regress.ReadLightGBM([]byte(changed), "y", "s")
		if !errors.Is(err, regress.ErrBadFile) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: ReadLightGBM = %v, want ErrBadFile with %q", c.name, err, c.says)
		}
	}
}

// python returns a Python that has LightGBM: the one that COURIER_TEST_PYTHON
// names, or that of the path. Without it the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("COURIER_TEST_PYTHON")
	if name == "" {
		name = "python3"
	}
	if err := exec.Command(name, "testdata/lightgbm/predict.py").Run(); err != nil {
		t.Skipf("LightGBM's Python package cannot be asked: %s: %v (COURIER_TEST_PYTHON may name a Python that has it)", name, err)
	}
	return name
}

// LightGBM opens what we wrote, and predicts what we predict.
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
			return regress.FitForest(context.Background(), single, regress.ForestOptions{Trees: 10, MaxDepth: 6, Bootstrap: true, Folds: -1})
		},
		"one leaf": func() (*regress.Regressor, error) {
			return regress.FitBoosting(context.Background(), constant, regress.BoostingOptions{Trees: 10, Folds: -1})
		},
	}
	for _, c := range []regress.Criterion{regress.Squared, regress.Absolute, regress.Huber, regress.Quantile} {
		o := regress.BoostingOptions{Trees: 20, Leaves: 12, Criterion: c, Folds: -1}
		if c == regress.Quantile {
			o.Level = 0.9
		}
		fits["boosting "+string(c)] = func() (*regress.Regressor, error) { return regress.FitBoosting(context.Background(), bound, o) }
	}
	for _, c := range []regress.Criterion{regress.Squared, regress.Absolute} {
		o := regress.ForestOptions{Trees: 20, MaxDepth: 8, Criterion: c, Bootstrap: true, Folds: -1}
		fits["forest "+string(c)] = func() (*regress.Regressor, error) { return regress.FitForest(context.Background(), bound, o) }
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
		t.Fatalf("LightGBM cannot read what we wrote: %v", err)
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
		if want, err := strconv.ParseFloat(line, 64); err != nil || math.Abs(got.Value-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s, row %d: Predict = %v, LightGBM says %s", name, k%rows, got.Value, line)
		}
	}
}

func FuzzReadLightGBM(f *testing.F) {
	for _, name := range []string{"leaf", "huber", "monotone", "forest"} {
		model, err := os.ReadFile("testdata/lightgbm/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(model)
	}
	f.Fuzz(func(t *testing.T, model []byte) {
		r, err := regress.ReadLightGBM(model, "y", "s")
		if err != nil {
			if !errors.Is(err, regress.ErrBadFile) {
				t.Fatalf("ReadLightGBM = %v, want ErrBadFile", err)
			}
			return
		}
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regress.Load(r.EncodeModel(), manifest); err != nil && !errors.Is(err, regress.ErrBadFile) {
			t.Fatalf("Load = %v: two readers disagree", err)
		}
	})
}
