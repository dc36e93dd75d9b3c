package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/policy"

	"github.com/google/go-cmp/cmp"
)

// trueCurve has a rate that grows with the power 0.6 of the units, up to 32.
func trueCurve() (c policy.Curve) {
	for units := 1; units <= 32; units *= 2 {
		c = append(c, policy.CurvePoint{Units: units, Rate: 3 * math.Pow(float64(units), 0.6)})
	}
	return c
}

func TestSmooth_LeavesMeasuredRates(t *testing.T) {
	exact := trueCurve()
	if diff := cmp.Diff(exact, exact.Smooth()); diff != "" {
		t.Errorf("a measured curve changed (-want +got):\n%s", diff)
	}
	mixed := trueCurve()
	for i := range mixed {
		if i != 2 {
			mixed[i].Rate *= 1.3
			mixed[i].Error = 0.1
		}
	}
	if got := mixed.Smooth(); got[2] != exact[2] {
		t.Errorf("the measured point became %+v, want %+v", got[2], exact[2])
	}
}

// Independent errors of 10 % become smaller, and the largest rate by chance no longer stands out.
func TestSmooth_ReducesIndependentErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	before, after, n := 0.0, 0.0, 0
	for range 2000 {
		noisy, exact := trueCurve(), trueCurve()
		for i := range noisy {
			noisy[i].Rate *= math.Exp(0.1 * random.NormFloat64())
			noisy[i].Error = 0.1
		}
		for i, p := range noisy.Smooth() {
			before += math.Pow(math.Log(noisy[i].Rate/exact[i].Rate), 2)
			after += math.Pow(math.Log(p.Rate/exact[i].Rate), 2)
			n++
		}
	}
	// A quadratic in six points leaves half of the variance.
	if ratio := after / before; ratio > 0.55 {
		t.Errorf("variance of %d errors: %.2f of that before, want at most 0.55", n, ratio)
	}
}

// Whatever the curve, every usable rate stays positive and finite.
func FuzzSmooth(f *testing.F) {
	f.Add(1.0, 0.1, 2.0, 0.0, 3.0, 0.5)
	f.Add(1e-300, 1e300, 1e300, 1e-300, 0.0, 1.0)
	f.Add(math.Inf(1), 0.1, math.NaN(), 0.1, -1.0, -1.0)
	f.Fuzz(func(t *testing.T, r1, e1, r2, e2, r3, e3 float64) {
		c := policy.Curve{
			{Units: 1, Rate: r1, Error: e1},
			{Units: 2, Rate: r2, Error: e2},
			{Units: 8, Rate: r3, Error: e3},
		}
		for i, p := range c.Smooth() {
			isUsable := c[i].Rate > 0 && !math.IsInf(c[i].Rate, 1)
			if isUsable && !(p.Rate > 0 && !math.IsInf(p.Rate, 1)) {
				t.Errorf("point %d of %+v became %+v", i, c, p)
			}
		}
	})
}
