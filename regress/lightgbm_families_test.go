package regress_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/regress"
)

// askLightGBM returns the prediction of LightGBM for each row.
func askLightGBM(t *testing.T, interpreter string, model []byte, rows [][]float64) []float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "model.txt")
	if err := os.WriteFile(file, model, 0o644); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, row := range rows {
		for f, x := range row {
			if f > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strconv.FormatFloat(x, 'g', -1, 64))
		}
		text.WriteByte('\n')
	}
	command := exec.Command(interpreter, "testdata/lightgbm/predict.py", file)
	command.Stdin, command.Stderr = strings.NewReader(text.String()), os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("LightGBM cannot read the file: %v", err)
	}
	var predicted []float64
	for line := range strings.FieldsSeq(string(output)) {
		y, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		predicted = append(predicted, y)
	}
	if len(predicted) != len(rows) {
		t.Fatalf("LightGBM predicts %d rows, want %d", len(predicted), len(rows))
	}
	return predicted
}

// The trees of every family are LightGBM's too: all of a forest or of boosting,
// whose logarithm it predicts where that was fitted, the correction of a law, and
// a single 0 for a Gaussian process.
func TestEncodeModel_LightGBMReadsEveryFamily(t *testing.T) {
	interpreter := python(t)
	ctx, d := context.Background(), paperLike(288, 1)
	forest := regress.ForestOptions{
		Trees:     20,
		MaxDepth:  6,
		Bootstrap: true,
		Folds:     -1,
		Transform: regress.Log,
	}
	boosting := regress.BoostingOptions{
		Trees:     30,
		Leaves:    8,
		Criterion: regress.Squared,
		Folds:     -1,
		Transform: regress.Log,
	}
	law := func(o regress.LawOptions) func() (*regress.Regressor, error) {
		o.Transform, o.Folds = regress.Log, -1
		return func() (*regress.Regressor, error) { return regress.FitLaw(ctx, d, o) }
	}
	for _, c := range []struct {
		name      string
		fit, base func() (*regress.Regressor, error) // base is what the trees correct
	}{
		{
			"forest",
			func() (*regress.Regressor, error) { return regress.FitForest(ctx, d, forest) }, nil,
		},
		{
			"boosting",
			func() (*regress.Regressor, error) { return regress.FitBoosting(ctx, d, boosting) },
			nil,
		},
		{"law + forest", law(regress.LawOptions{Forest: &forest}), law(regress.LawOptions{})},
		{"law + boosting", law(regress.LawOptions{Boosting: &boosting}), law(regress.LawOptions{})},
		{"law", law(regress.LawOptions{}), law(regress.LawOptions{})},
		{"gaussian", func() (*regress.Regressor, error) {
			return regress.FitGaussian(ctx, d, regress.GaussianOptions{
				Transform: regress.Log,
				Folds:     -1,
				Starts:    1,
			})
		}, func() (*regress.Regressor, error) {
			return regress.FitGaussian(ctx, d, regress.GaussianOptions{
				Transform: regress.Log,
				Folds:     -1,
				Starts:    1,
			})
		}},
	} {
		r, p := compiled(t, c.fit)
		var rows [][]float64
		for i := range d.Len() {
			row := d.Row(i, nil)
			row[0], row[1] = row[0]*1.3, row[1]+0.5
			rows = append(rows, row)
		}
		var base *regress.Predictor
		if c.base != nil {
			_, base = compiled(t, c.base)
		}
		theirs := askLightGBM(t, interpreter, r.EncodeModel(), rows)
		for i, row := range rows {
			ours, err := p.Predict(row)
			if err != nil {
				t.Fatal(err)
			}
			want := math.Log(ours.Value)
			if base != nil {
				below, err := base.Predict(row)
				if err != nil {
					t.Fatal(err)
				}
				want -= math.Log(below.Value)
			}
			if math.Abs(theirs[i]-want) > 1e-11 {
				t.Fatalf("%s, row %d: LightGBM predicts %g, want %g", c.name, i, theirs[i], want)
			}
		}
	}
}

func compiled(
	t *testing.T, fit func() (*regress.Regressor, error),
) (*regress.Regressor, *regress.Predictor) {
	t.Helper()
	r, err := fit()
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}
