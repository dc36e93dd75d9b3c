package regress

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example is the regressor of testdata/example.txt: two trees, one of them a
// single leaf, with the figures that LightGBM 4.6 and leaves agreed on.
func example() *Regressor {
	first := tree{
		nodes: []treeNode{
			{feature: 0, threshold: 96, gain: 812.5, left: 1, right: -2, value: 180.25, weight: 12, count: 12},
			{feature: 1, threshold: 2.5, gain: 96.25, left: -1, right: -3, value: 440.5, weight: 6, count: 6},
		},
		leaves: []treeLeaf{{412.75, 4, 4}, {118.5, 6, 6}, {538, 2, 2}},
	}
	second := tree{leaves: []treeLeaf{{180.25, 12, 12}}}
	return &Regressor{
		ensemble: ensemble{trees: []tree{first, second}, average: true},
		Manifest: Manifest{Format: 1, Target: "epoch_time", Unit: "s", Transform: None, Smearing: 1, Spread: 150,
			Family: FamilyForest, Forest: &ForestOptions{Trees: 2, MaxDepth: 2, Criterion: Absolute, Transform: None},
			Features: []FeatureRange{
				{Feature: Feature{Name: "batch_size"}, Min: 64, Max: 512},
				{Feature: Feature{Name: "processes"}, Min: 1, Max: 40},
			},
			Calibration: CalibrationTable{Count: 3, Residuals: []float64{-20, 0, 30}},
		},
	}
}

func TestEncodeModel_WritesTheDocumentedFile(t *testing.T) {
	got := example().EncodeModel()
	if *update {
		if err := os.WriteFile("testdata/example.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/example.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("EncodeModel differs from testdata/example.txt (-want +got):\n%s", diff)
	}
}

func TestLoad_PredictsTheDocumentedValues(t *testing.T) {
	manifest, err := example().EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile("testdata/example.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(model, manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row  []float64
		want float64
	}{
		{[]float64{64, 1}, 296.5},
		{[]float64{64, 30}, 359.125},
		{[]float64{512, 1}, 149.375},
		{[]float64{96, 2.5}, 296.5},
	} {
		got, err := p.Predict(c.row)
		if err != nil || got.Value != c.want {
			t.Errorf("Predict(%g) = %g, %v, want %g", c.row, got.Value, err, c.want)
		}
	}
}
