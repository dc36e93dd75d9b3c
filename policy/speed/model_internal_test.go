package speed

import (
	"math"
	"testing"
)

// Reports of earlier shapes count less, because a job may have changed since then.
func TestEquations_WeightLaterShapesMore(t *testing.T) {
	seen := make([]ShapeTime, 3)
	for i := range seen {
		seen[i].Reports = 2
	}
	for i, got := range (&equations{seen: seen}).weights() {
		if want := 2 * math.Pow(decay, float64(2-i)); math.Abs(got-want) > 1e-12 {
			t.Errorf("weight of shape %d is %g, want %g", i, got, want)
		}
	}
}
