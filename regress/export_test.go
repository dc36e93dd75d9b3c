package regress

import "testing"

// Golden returns the file and the manifest of the golden example to tests
// outside the package.
func Golden(t testing.TB) (model, manifest []byte) {
	t.Helper()
	r := example()
	manifest, err := r.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	return r.EncodeModel(), manifest
}

// Referee returns how leaves predicts rows by a regressor's file.
func Referee(t testing.TB, r *Regressor) func(row []float64) float64 {
	t.Helper()
	predict, err := readByLeaves(r.EncodeModel())
	if err != nil {
		t.Fatal(err)
	}
	return predict
}

// Unwidened returns the bound that a point would have if no level had been left
// out: as wide as its table and Spread make it.
func Unwidened(p *Predictor, point Prediction, confidence float64) float64 {
	point.widening = 0
	bound, _ := p.UpperBound(point, confidence)
	return bound
}
