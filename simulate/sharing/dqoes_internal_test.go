package sharing

import (
	"math"
	"strings"
	"testing"

	"courier/simulate/figures"
)

func TestIncrease_HasAnInterval(t *testing.T) {
	if i := increase([]float64{2, 4, 6}, []float64{1, 2, 3}); i.Reached != 1 || i.Low != 1 || i.High != 1 {
		t.Errorf("twice as many in each schedule: %+v, want 1", i)
	}
	// Without one schedule each, the increases are 2, 1 and 0.
	i := increase([]float64{0, 2, 4}, []float64{1, 1, 1})
	half := 1.96 * math.Sqrt(2.0/3*(1+0+1))
	if math.Abs(i.Reached-1) > 1e-12 || math.Abs(i.High-1-half) > 1e-12 || math.Abs(1-i.Low-half) > 1e-12 {
		t.Errorf("increase %+v, want 1 with %g on both sides", i, half)
	}
}

// Eight times as many satisfied clients need a burst with contention, where fair sharing satisfies few,
// and a policy that gives up some jobs: shares for all deadlines satisfy three times as many.
func TestAddDQoES_ReachesEightTimesInABurst(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 480 nodes")
	}
	f := &figures.Comparisons{}
	addDQoES(f)
	if len(f.Figures) != 12 {
		t.Fatalf("%d figures, want three rules on four schedules", len(f.Figures))
	}
	for i := range f.Figures {
		g := &f.Figures[i]
		isBurst := strings.HasSuffix(g.Variant, "over 200 s, contention 0.1")
		want := isBurst && !strings.Contains(g.Variant, "satisfactory")
		if *g.Target != 7 || *g.IsMet != want || !(g.Low > 0) || !(g.Low < g.Reached) {
			t.Errorf("%+v, want the target 7, met %t", g, want)
		}
	}
}
