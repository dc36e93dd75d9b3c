package leastsquares_test

import (
	"math"
	"testing"

	"courier/regress/leastsquares"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][]float64
		y    []float64
		at   []float64
		want float64
	}{
		{"a line", [][]float64{{1, 1}, {1, 2}, {1, 3}}, []float64{5, 7, 9}, []float64{1, 10}, 23},
		{"the mean", [][]float64{{1}, {1}, {1}}, []float64{1, 2, 6}, []float64{1}, 3},
		{"two means", [][]float64{{1, 0}, {1, 0}, {1, 1}, {1, 1}}, []float64{1, 3, 4, 6}, []float64{1, 1}, 5},
		{"equal inputs", [][]float64{{1, 1, 1}, {1, 2, 2}}, []float64{5, 7}, []float64{1, 10, 10}, 23},
		{"an input of zeros", [][]float64{{1, 0}, {1, 0}}, []float64{4, 6}, []float64{1, 0}, 5},
		{"fewer rows than inputs", [][]float64{{1, 2, 4}}, []float64{8}, []float64{1, 2, 4}, 8},
		{"large inputs", [][]float64{{1, 1e9}, {1, 2e9}, {1, 3e9}}, []float64{5, 7, 9}, []float64{1, 1e10}, 23},
	} {
		got := leastsquares.Predict(leastsquares.Fit(c.rows, c.y), c.at)
		if math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%s: predicted %g, want %g", c.name, got, c.want)
		}
	}
}

func TestFit_OfAnInfiniteInput(t *testing.T) {
	for _, c := range leastsquares.Fit([][]float64{{1, math.Inf(1)}, {1, 2}}, []float64{1, 2}) {
		if c != 0 {
			t.Errorf("coefficient %g, want 0", c)
		}
	}
}
