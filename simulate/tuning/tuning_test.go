package tuning_test

import (
	"strings"
	"testing"

	"courier/simulate/figures"
	"courier/simulate/tuning"
)

// 63 % less time at an equal budget needs at least 1,024 trials and a tight budget. The part of the
// published 41 % less cost that is reached grows with the number of trials.
func TestReproduce_NamesWhenThePublishedFiguresAreReached(t *testing.T) {
	f, err := tuning.Reproduce()
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]figures.Figure{}
	for _, x := range f.Figures {
		if x.Low < -1e-9 || x.High >= 1 || x.IsMet != (x.High >= x.Target) {
			t.Errorf("%s, %s: %.3f to %.3f, met %t, want reductions of 0 to 1", x.Variant, x.Name, x.Low,
				x.High, x.IsMet)
		}
		reached[x.Variant+": "+x.Name] = x
	}
	for name, want := range map[string]struct{ low, high float64 }{
		"1024 trials, budget 1.02 of the smallest: tuning time at equal budget":  {0.63, 0.70},
		"16384 trials, budget 1.02 of the smallest: tuning time at equal budget": {0.63, 0.80},
		"64 trials, budget 1.1 of the smallest: tuning time at equal budget":     {0.40, 0.50},
		"1024 trials, budget 2 of the smallest: tuning cost at equal time":       {0.22, 0.30},
		"16384 trials, budget 4 of the smallest: tuning cost at equal time":      {0.30, 0.41},
	} {
		if x, found := reached[name]; !found || x.High < want.low || x.High > want.high {
			t.Errorf("%s: at most %.3f (found %t), want %.2f to %.2f", name, x.High, found, want.low, want.high)
		}
	}
	var text strings.Builder
	if err := f.WriteText(&text); err != nil || strings.Count(text.String(), "\n") != len(f.Figures)+1 {
		t.Errorf("the table has not one line per figure (%v):\n%s", err, &text)
	}
}

func TestNetwork_HasPositiveTimesAndCosts(t *testing.T) {
	for _, n := range tuning.Networks() {
		for _, o := range n.Options() {
			if !(o.Seconds > 0) || !(o.Cost > 0) {
				t.Errorf("%s with %s: %g s and $%g, want positive numbers", n.Name, o.Name, o.Seconds, o.Cost)
			}
		}
	}
}
