package regress_test

import (
	"errors"
	"math"
	"testing"

	"courier/regress"
)

// Noise that sums to 0 in every cell leaves the coefficients as they were put
// in, and its squares are the residuals.
func TestFitLinear_AnalysesVariance(t *testing.T) {
	d := &regress.Dataset{Features: []regress.Feature{{Name: "a"}, {Name: "b", Levels: []string{"x", "y"}}}, Columns: make([][]float64, 2), TargetName: "t"}
	noise := []float64{1, -1, 0.5, -0.5, 2, -2, 1, -1, 0.5, -0.5, 2, -2}
	for i := range 12 {
		a, b := float64(i/2%2), float64(i/4%2)
		if i >= 8 {
			a, b = float64(i/2%2), float64(i/2%2)
		}
		d.Columns[0], d.Columns[1] = append(d.Columns[0], a), append(d.Columns[1], b)
		d.Target = append(d.Target, 10+4*a+2*b+3*a*b+noise[i])
	}
	l, err := regress.FitLinear(d, 2)
	if err != nil {
		t.Fatal(err)
	}
	if l.Freedom != 8 || math.Abs(l.Intercept-10) > 1e-9 {
		t.Errorf("freedom %d, intercept %g, want 8 and 10", l.Freedom, l.Intercept)
	}
	rss := 0.0
	for _, e := range noise {
		rss += e * e
	}
	if math.Abs(l.Variance-rss/8) > 1e-9 {
		t.Errorf("variance %g, want %g", l.Variance, rss/8)
	}
	for name, want := range map[string]float64{"a": 4, "b=y": 2, "b=y:a": 3} {
		e, ok := l.Effect(name)
		if !ok || math.Abs(e.Coefficient-want) > 1e-9 {
			t.Errorf("%s: %+v, want a coefficient of %g", name, e, want)
		}
		if math.Abs((e.High+e.Low)/2-want) > 1e-9 || math.Abs((e.High-e.Low)/2-2.306004135*e.Error) > 1e-6 {
			t.Errorf("%s: interval %g to %g of error %g", name, e.Low, e.High, e.Error)
		}
	}
	// The highest product has the same test by t and by F.
	e, _ := l.Effect("a:b=y")
	if math.Abs(e.F-e.T*e.T) > 1e-6*e.F || math.Abs(e.P-e.PT) > 1e-9 {
		t.Errorf("a:b: F %g, t^2 %g, p %g and %g", e.F, e.T*e.T, e.P, e.PT)
	}
}

func TestFitLinear_Refuses(t *testing.T) {
	d := paperLike(16, 1)
	if _, err := regress.FitLinear(d, 4); !errors.Is(err, regress.ErrTooFewExamples) && !errors.Is(err, regress.ErrBadExamples) {
		t.Errorf("16 examples of 16 terms: %v", err)
	}
	if _, err := regress.FitLinear(paperLike(96, 1), 0); !errors.Is(err, regress.ErrBadSettings) {
		t.Errorf("order 0: %v", err)
	}
	d = paperLike(96, 1)
	copy(d.Columns[1], d.Columns[0]) // nobody can tell them apart
	if l, err := regress.FitLinear(d, 1); !errors.Is(err, regress.ErrBadExamples) {
		t.Errorf("a feature twice: %+v, %v", l, err)
	}
	if _, err := regress.LeastSquares(d, []string{"log(nothing)"}); !errors.Is(err, regress.ErrBadSettings) {
		t.Errorf("LeastSquares: %v", err)
	}
}

func TestPaired_TellsLuckFromSkill(t *testing.T) {
	var a, b, same []float64
	for i := range 40 {
		x := float64(i % 7)
		a, b, same = append(a, x), append(b, x+1+0.1*float64(i%3)), append(same, x+float64(i%2*2-1))
	}
	e, err := regress.Paired(a, b, nil, 1)
	if err != nil || !(e.High < 0) || math.Abs(e.Value+1.1) > 0.01 {
		t.Errorf("Paired of better losses = %+v, %v", e, err)
	}
	if e, err = regress.Paired(a, same, nil, 1); err != nil || e.Low > 0 || e.High < 0 {
		t.Errorf("Paired of equal losses = %+v, %v", e, err)
	}
	if _, err := regress.Paired(a, b[:3], nil, 1); !errors.Is(err, regress.ErrBadExamples) {
		t.Errorf("Paired of unequal lengths = %v", err)
	}
}
