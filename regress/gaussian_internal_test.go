package regress

import (
	"math"
	"testing"
)

func wavy(n int) *Dataset {
	d := &Dataset{Features: []Feature{{Name: "a"}, {Name: "b"}, {
		Name:   "kind",
		Levels: []string{"x", "y", "z"},
	}}, Columns: make([][]float64, 3)}
	random := stream(5)
	for range n {
		a := float64(1 + random.below(64))
		b := float64(random.below(5))
		kind := float64(random.below(3))
		for f, x := range []float64{a, b, kind} {
			d.Columns[f] = append(d.Columns[f], x)
		}
		d.Target = append(d.Target, 100/a+3*math.Sin(b)+kind+float64(random.below(100))/1000)
	}
	return d
}

// The gradient of the marginal likelihood equals that by finite differences.
func TestProcess_LossHasItsGradient(t *testing.T) {
	d := wavy(30)
	d.Weight = make([]float64, d.Len())
	for i := range d.Weight {
		d.Weight[i] = 1 + float64(i%3)
	}
	p, err := newGaussianProcess(d, d.Target)
	if err != nil {
		t.Fatal(err)
	}
	theta := []float64{0.2, 0.5, 0.1, -0.3, -0.4, -2}
	if len(p.inputs)+2 != len(theta) {
		t.Fatalf("%d inputs, want %d", len(p.inputs), len(theta)-2)
	}
	gradient := make([]float64, len(theta))
	p.negativeLogPosterior(theta, gradient)
	for k := range theta {
		const step = 1e-5
		up, down := append([]float64(nil), theta...), append([]float64(nil), theta...)
		up[k] += step
		down[k] -= step
		if want := (p.negativeLogPosterior(up, nil) - p.negativeLogPosterior(down, nil)) / (2 * step); math.Abs(
			gradient[k]-want,
		) > 1e-4*(1+math.Abs(
			want,
		)) {
			t.Errorf("slope along %d = %g, by differences %g", k, gradient[k], want)
		}
	}
}

// With almost no noise a Gaussian process interpolates its examples.
func TestProcess_PosteriorInterpolates(t *testing.T) {
	d := wavy(12)
	p, err := newGaussianProcess(d, d.Target)
	if err != nil {
		t.Fatal(err)
	}
	g := p.posterior([]float64{0, 0, 0, 0, 0, math.Log(1e-4)}, nil)
	var row []float64
	for i, y := range d.Target {
		row = d.Row(i, row)
		if got := g.predict(row); math.Abs(got-y) > 0.01 {
			t.Errorf("predict(%g) = %g, want %g", row, got, y)
		}
	}
}
