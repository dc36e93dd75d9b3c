package regress_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// A value that too few examples had is predicted like any other, but nothing is
// guaranteed for it: its bound is wider by the spread.
func TestPredict_GuaranteesNothingForAScarceValue(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector; its goroutines meet in shorter tests, too")
	}
	for _, c := range []struct {
		name    string
		feature int
		scarce  float64
	}{{"a number with levels", 1, 4}, {"the largest", 0, 512}, {"a category", 3, 1}} {
		d := paperLike(288, 1)
		_, before := forest(t, d, small())
		d.Features = slices.Clone(d.Features)
		d.Features[c.feature].Scarce = []float64{c.scarce}
		r, p := forest(t, d, small())
		for i := range d.Len() {
			row := d.Row(i, nil)
			was, err := before.Predict(row)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Predict(row)
			if err != nil {
				t.Fatal(err)
			}
			scarce := row[c.feature] == c.scarce
			if got.Value != was.Value || got.Extrapolated != scarce {
				t.Fatalf("%s: %v is predicted %+v, want %+v and scarce %v", c.name, row, got, was,
					scarce)
			}
			bound, promised := p.UpperBound(got, 0.9)
			if plain := mustBound(t, before, was, 0.9); promised == scarce ||
				scarce != (bound > plain) {
				t.Fatalf("%s: the bound of %v is %g, promised %v, without scarce values %g",
					c.name, row, bound, promised, plain)
			}
			if wider, _ := p.Widening(got); scarce && wider < r.Manifest.Spread*(1-1e-9) {
				t.Fatalf("%s: wider by %g, want the spread %g at least", c.name, wider,
					r.Manifest.Spread)
			}
		}
	}
	d := paperLike(96, 1)
	for _, bad := range []regress.Feature{{Name: "batch_size", Scarce: []float64{math.NaN()}}, {
		Name:   "batch_size",
		Levels: []string{"x"},
		Scarce: []float64{1},
	}} {
		d.Features = slices.Clone(d.Features)
		d.Features[0] = bad
		if err := d.Validate(); !errors.Is(err, regress.ErrBadExamples) ||
			!strings.Contains(err.Error(), "scarce") {
			t.Errorf("%+v: %v, want an error that names the scarce value", bad, err)
		}
	}
}

// A feature with Alone is in no product and has no inverse.
func TestFitLaw_HasNoProductsOfFeaturesWithAlone(t *testing.T) {
	d := paperLike(288, 1)
	d.Features = slices.Clone(d.Features)
	d.Features[2].Alone, d.Features[3].Alone = true, true
	r, err := regress.FitLaw(t.Context(), d, regress.LawOptions{Transform: regress.Log, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, alone, products := r.Manifest.Law, map[int]int{}, 0
	for _, term := range l.Terms {
		if len(term) > 1 {
			products++
		}
		for _, i := range term {
			if f := l.Inputs[i].Feature; d.Features[f].Alone {
				if alone[f]++; len(term) > 1 || l.Inputs[i].Form == regress.Inverse {
					t.Errorf("term of %d inputs with %+v, want no product of a feature that is alone",
						len(term), l.Inputs[i])
				}
			}
		}
	}
	if alone[2] != 1 || alone[3] != 1 || products == 0 {
		t.Errorf("%v terms of the features that act alone, %d products; want one of each, and products of the others",
			alone, products)
	}
}
