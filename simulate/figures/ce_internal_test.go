package figures

import (
	"strings"
	"testing"

	"courier/tune/halving"
)

// 63 % less time at an equal budget needs at least 1,024 trials and a tight budget. The part of the
// published 41 % less cost that is reached grows with the number of trials.
func TestCEScaling_NamesWhenThePublishedFiguresAreReached(t *testing.T) {
	f, err := CEScaling()
	if err != nil {
		t.Fatal(err)
	}
	type span struct{ low, high float64 }
	reached, met := map[string]span{}, map[string]int{}
	for _, x := range f.Figures {
		if x.Reached < -1e-9 || x.Reached >= 1 || x.Low != x.High {
			t.Errorf("%s, %s: %.3f to %.3f, want one reduction of 0 to 1", x.Variant, x.Name, x.Low, x.High)
		}
		group, _, _ := strings.Cut(x.Variant, " of the smallest")
		key := group + ": " + x.Name
		r, isKnown := reached[key]
		if !isKnown {
			r = span{x.Reached, x.Reached}
		}
		reached[key] = span{min(r.low, x.Reached), max(r.high, x.Reached)}
		if x.IsMet != nil && *x.IsMet {
			met[key]++
		}
	}
	for name, want := range map[string]struct {
		low, high float64 // of the largest reduction
		met       int     // of three networks with two values of eta
	}{
		"1024 trials, budget 1.02: tuning time at equal budget, published":  {0.63, 0.70, 2},
		"16384 trials, budget 1.02: tuning time at equal budget, published": {0.63, 0.80, 4},
		"64 trials, budget 1.1: tuning time at equal budget":                {0.40, 0.50, 6},
		"1024 trials, budget 2: tuning cost at equal time":                  {0.22, 0.30, 6},
		"16384 trials, budget 4: tuning cost at equal time, published":      {0.30, 0.41, 0},
	} {
		x, found := reached[name]
		if !found || x.high < want.low || x.high > want.high || met[name] != want.met {
			t.Errorf("%s: at most %.3f, %d met (found %t), want %.2f to %.2f and %d", name, x.high, met[name],
				found, want.low, want.high, want.met)
		}
	}
	var text strings.Builder
	if f.WriteText(&text); strings.Count(text.String(), "\n") != len(reached)+1 {
		t.Errorf("the table has not one line per case:\n%s", &text)
	}
}

// With functions and memory alone, no budget lets the cost at equal time fall by the published 41 %, even
// with 16,384 trials.
func TestCEScaling_NoBudgetReachesThePublishedCost(t *testing.T) {
	for _, n := range tunedNetworks {
		for _, eta := range []int{2, 3} {
			largest, at := 0.0, 0.0
			for budget := 1.02; budget < 20; budget *= 1.05 {
				_, cost, err := stagedReductions(&n, halving.Stages(16384, eta, 2), budget)
				if err != nil {
					t.Fatal(err)
				}
				if cost > largest {
					largest, at = cost, budget
				}
			}
			t.Logf("%s network, eta %d: at most %.1f %%, with a budget of %.2f", n.name, eta, 100*largest, at)
			if largest < 0.3 || largest >= publishedCost {
				t.Errorf("%s network, eta %d: %.3f, want 0.3 to %g", n.name, eta, largest, publishedCost)
			}
		}
	}
}
