package regress

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPerfectHash_ContainsItsNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := map[string]func(i int) float64{
		"powers of two":  func(i int) float64 { return math.Ldexp(1, i-10) },
		"whole":          func(i int) float64 { return float64(i) },
		"of both signs":  func(i int) float64 { return float64(i%16+1) * float64(1-i/16*2) },
		"far apart":      func(i int) float64 { return math.Ldexp(1, 64*i-1022) },
		"neighbours":     func(i int) float64 { return math.Float64frombits(math.Float64bits(1) + uint64(i)) },
		"random":         func(int) float64 { return random.NormFloat64() },
		"one, again":     func(int) float64 { return 7 },
		"in many digits": func(i int) float64 { return 1 / float64(i+3) },
	}
	for name, number := range numbers {
		var in []float64
		for i := range maxHashed {
			in = append(in, number(i))
		}
		s := newPerfectHash(in)
		if s == nil {
			t.Errorf("%s: no perfect hash", name)
			continue
		}
		for _, x := range in {
			if !s.holds(x) || s.holds(math.Nextafter(x, 1e300)) && name != "neighbours" {
				t.Errorf("%s: %g is not found, or the next larger number is", name, x)
			}
		}
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.123, 1e9} {
			if s.holds(x) {
				t.Errorf("%s: %g is found, but was not added", name, x)
			}
		}
	}
	if s := newPerfectHash([]float64{0}); !s.holds(math.Copysign(0, -1)) {
		t.Error("-0 is not found although 0 is")
	}
	if newPerfectHash(nil) != nil || newPerfectHash(make([]float64, maxHashed+1)) != nil {
		t.Error("perfect hash of no or too many numbers")
	}
}
