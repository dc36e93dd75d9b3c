package treefile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/regress/treefile"
)

var testFeatures = []treefile.Feature{
	{Name: "model", Levels: []string{"a", "b", "c"}},
	{Name: "load"},
	{Name: "batch_size", Unit: "samples"},
}

// testPoints returns points with three models, two loads and batch sizes up to 512, in random order.
func testPoints(seed uint64) []treefile.Point {
	var points []treefile.Point
	for model := range 3 {
		for _, load := range []float64{0.25, 1} {
			for batch := 32.; batch <= 512; batch *= 2 {
				points = append(points, treefile.Point{
					Row:   []float64{float64(model), load, batch},
					Value: math.Log(float64(1+model) * (load + 2048/batch)),
				})
			}
		}
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(points), func(i, j int) {
		points[i], points[j] = points[j], points[i]
	})
	return points
}

// encode returns the file and the manifest of a tree.
func encode(t testing.TB, features []treefile.Feature, points []treefile.Point) (m, manifest []byte) {
	t.Helper()
	tree, err := treefile.Grow(features, points)
	if err != nil {
		t.Fatal(err)
	}
	m, manifest, err = tree.Encode(treefile.Manifest{Target: "time", Transform: treefile.Log})
	if err != nil {
		t.Fatal(err)
	}
	return m, manifest
}

func load(t testing.TB, model, manifest []byte) *treefile.File {
	t.Helper()
	f, err := treefile.Load(model, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFile_PredictsThePoints(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1))
	f := load(t, model, manifest)
	for _, p := range testPoints(2) {
		if got, err := f.Predict(p.Row); err != nil || got != math.Exp(p.Value) {
			t.Errorf("Predict(%g) = %g, %v, want %g", p.Row, got, err, math.Exp(p.Value))
		}
	}
	if last := f.Manifest().Features[2]; last.Min != 32 || last.Max != 512 || last.Unit != "samples" {
		t.Errorf("feature of the manifest = %+v", last)
	}
}

// Between points, and outside their range, a row gets the value of a near point.
func TestFile_PredictsRowsWithoutAPoint(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1))
	f := load(t, model, manifest)
	for _, c := range []struct{ row, near []float64 }{
		{[]float64{1, 1, 90}, []float64{1, 1, 64}},
		{[]float64{1, 1, 100}, []float64{1, 1, 128}},
		{[]float64{1, 0.5, 64}, []float64{1, 0.25, 64}},
		{[]float64{0, 20, 1}, []float64{0, 1, 32}},
		{[]float64{7, 1, 4096}, []float64{2, 1, 512}},
	} {
		got, err := f.Predict(c.row)
		want, _ := f.Predict(c.near)
		if err != nil || got != want {
			t.Errorf("Predict(%g) = %g, %v, want %g, the prediction for %g", c.row, got, err, want, c.near)
		}
	}
}

func TestFile_RefusesBadRows(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1))
	f := load(t, model, manifest)
	for _, row := range [][]float64{nil, {1, 1}, {1, 1, 1, 1}, {1, math.NaN(), 64}, {1, 1, math.Inf(1)}} {
		if _, err := f.Predict(row); err == nil {
			t.Errorf("Predict(%g) = %v, want an error", row, err)
		}
	}
}

func TestGrow_MergesEqualRows(t *testing.T) {
	row := []float64{0, 1, 64}
	for name, points := range map[string][]treefile.Point{
		"one point":  {{Row: row, Value: 3}},
		"equal rows": {{Row: row, Value: 5}, {Row: row, Value: 1}, {Row: row, Value: 3}},
	} {
		model, manifest := encode(t, testFeatures, points)
		if got, err := load(t, model, manifest).Predict(row); err != nil || got != math.Exp(3) {
			t.Errorf("%s: Predict = %g, %v, want %g", name, got, err, math.Exp(3))
		}
		if !strings.Contains(string(model), "num_leaves=1\n") {
			t.Errorf("%s: the tree has several leaves:\n%s", name, model)
		}
	}
}

func TestGrow_RefusesWhatNoReaderAccepts(t *testing.T) {
	point := treefile.Point{Row: []float64{1, 2}, Value: 1}
	two := []treefile.Feature{{Name: "a"}, {Name: "b"}}
	for says, c := range map[string]struct {
		features []treefile.Feature
		points   []treefile.Point
	}{
		"no points":          {two, nil},
		"point 1: row [1]":   {two, []treefile.Point{point, {Row: []float64{1}}}},
		"value NaN":          {two, []treefile.Point{{Row: point.Row, Value: math.NaN()}}},
		"point 0: row [+Inf": {two, []treefile.Point{{Row: []float64{math.Inf(1), 1}}}},
	} {
		if _, err := treefile.Grow(c.features, c.points); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Grow = %v, want an error with %q", err, says)
		}
	}
}

// Thresholds separate values even if no number lies between them.
func TestGrow_SeparatesNeighbouringNumbers(t *testing.T) {
	numbers := []float64{-math.MaxFloat64, 0, math.SmallestNonzeroFloat64, 1, math.Nextafter(1, 2), math.MaxFloat64}
	var points []treefile.Point
	for i, x := range numbers {
		points = append(points, treefile.Point{Row: []float64{0, 0, x}, Value: float64(i)})
	}
	model, manifest := encode(t, testFeatures, points)
	f := load(t, model, manifest)
	for _, p := range points {
		if got, err := f.Predict(p.Row); err != nil || got != math.Exp(p.Value) {
			t.Errorf("Predict(%g) = %g, %v, want %g", p.Row, got, err, math.Exp(p.Value))
		}
	}
}

func TestEncode_DoesNotDependOnTheOrderOfPoints(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1))
	otherModel, otherManifest := encode(t, testFeatures, testPoints(2))
	if !bytes.Equal(model, otherModel) || !bytes.Equal(manifest, otherManifest) {
		t.Errorf("files differ:\n%s\n%s", model, otherModel)
	}
}

// The file is a public format: other programs read it.
func TestEncode_Golden(t *testing.T) {
	model, _ := encode(t, testFeatures[:2], []treefile.Point{
		{Row: []float64{0, 0.5}, Value: 1.5},
		{Row: []float64{1, 0.5}, Value: 2.25},
		{Row: []float64{1, 1}, Value: -1},
	})
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(model, want) {
		t.Errorf("file = %s\nwant %s", model, want)
	}
}

func TestLoad_KeepsTheManifest(t *testing.T) {
	tree, err := treefile.Grow(testFeatures, testPoints(1))
	if err != nil {
		t.Fatal(err)
	}
	heldOut := 0.07
	want := treefile.Manifest{
		Target:       "accuracy",
		Transform:    treefile.None,
		State:        json.RawMessage(`{"format":1}`),
		HeldOutError: &heldOut,
		Examples:     treefile.Examples{Count: 30, Configurations: 30},
		Version:      "1.2.3",
	}
	model, manifest, err := tree.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, model, manifest).Manifest()
	if got.Target != want.Target || *got.HeldOutError != heldOut || got.Examples != want.Examples ||
		got.Version != want.Version || len(got.Features) != 3 || !strings.Contains(string(got.State), `"format"`) {
		t.Errorf("manifest = %+v, want %+v with features", got, want)
	}
	if y, err := load(t, model, manifest).Predict([]float64{0, 1, 512}); err != nil || y != math.Log(5) {
		t.Errorf("without transform: Predict = %g, %v, want %g", y, err, math.Log(5))
	}
}

func TestLoad_RefusesAnyChangedByteAndAnyCut(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1)[:5])
	for i := range model {
		changed := bytes.Clone(model)
		changed[i] ^= 1
		if _, err := treefile.Load(changed, manifest); err == nil {
			t.Fatalf("byte %d changed: Load accepts the file", i)
		}
		if _, err := treefile.Load(model[:i], manifest); err == nil {
			t.Fatalf("cut to %d bytes: Load accepts the file", i)
		}
	}
}

func TestLoad_RefusesManifests(t *testing.T) {
	model, manifest := encode(t, testFeatures, testPoints(1))
	for _, c := range []struct{ old, new, says string }{
		{`"format": 1`, `"format": 2`, "format is 2"},
		{`"sha256": "`, `"sha256": "0`, "sha256"},
		{`{`, `[`, "manifest"},
	} {
		changed := strings.Replace(string(manifest), c.old, c.new, 1)
		if changed == string(manifest) {
			t.Fatalf("%s: nothing was changed", c.old)
		}
		_, err := treefile.Load(model, []byte(changed))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Load = %v, want an error with %q", c.new, err, c.says)
		}
	}
}

// python returns a Python interpreter with LightGBM: the one that COURIER_TEST_PYTHON names, or the
// first in PATH. Without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("COURIER_TEST_PYTHON")
	if name == "" {
		name = "python3"
	}
	if err := exec.Command(name, "testdata/predict.py").Run(); err != nil {
		t.Skipf("LightGBM's Python package is not installed: %s: %v "+
			"(COURIER_TEST_PYTHON may name a Python that has it)", name, err)
	}
	return name
}

// LightGBM reads the file and predicts the same numbers.
func TestEncode_IsReadByLightGBM(t *testing.T) {
	interpreter := python(t)
	for name, points := range map[string][]treefile.Point{
		"many leaves": testPoints(1), "one leaf": testPoints(1)[:1],
	} {
		model, manifest := encode(t, testFeatures, points)
		f := load(t, model, manifest)
		path := filepath.Join(t.TempDir(), "model.txt")
		if err := os.WriteFile(path, model, 0o644); err != nil {
			t.Fatal(err)
		}
		rows := [][]float64{{0, 0.25, 48}, {2, 0.625, 32}, {1, 0.6, 4096}}
		for _, p := range testPoints(2) {
			rows = append(rows, p.Row)
		}
		var text strings.Builder
		for _, row := range rows {
			fmt.Fprintf(&text, "%v,%v,%v\n", row[0], row[1], row[2])
		}
		command := exec.Command(interpreter, "testdata/predict.py", path)
		command.Stdin, command.Stderr = strings.NewReader(text.String()), os.Stderr
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s: LightGBM cannot read the file: %v", name, err)
		}
		lines := strings.Fields(string(output))
		if len(lines) != len(rows) {
			t.Fatalf("%s: LightGBM predicts %d rows, want %d", name, len(lines), len(rows))
		}
		for i, row := range rows {
			got, _ := f.Predict(row)
			if want, err := strconv.ParseFloat(lines[i], 64); err != nil || math.Exp(want) != got {
				t.Errorf("%s: Predict(%g) = %v, LightGBM predicts %s", name, row, got, lines[i])
			}
		}
	}
}
