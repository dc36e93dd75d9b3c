package evidence_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"courier/regress/evidence"
)

// The probability of a running job crosses the promised one rarely, however irregular its epochs are:
// crossings of 0.95 per run of 100 epochs after three runs with usual noise, for three SLOs.
func TestRest_DoesNotFlap(t *testing.T) {
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
	const epochs, count, promised = 100, 60, .95
	usual := noise{.02, .02, 0}
	for _, tc := range []struct {
		name             string
		past, now        noise
		shape            shapeOf
		crossings, width float64 // at most; the width is bound over median after half of the epochs
	}{
		{"usual", usual, usual, flat(epochs), .3, 1.1},
		{"correlated", noise{.02, .05, .9}, noise{.02, .05, .9}, flat(epochs), 1, 1.2},
		{"growing although past runs did not", usual, usual, growing(epochs), 1.2, 1.35},
		{"less regular than past runs", noise{.02, .003, 0}, noise{.02, .08, 0}, flat(epochs), 2.6, 1.2},
		{"far less regular", noise{.02, .003, 0}, noise{.02, .3, 0}, flat(epochs), 4.2, 1.5},
	} {
		crossings, width := 0, 0.0
		for seed := range uint64(count) {
			random := rand.New(rand.NewPCG(seed, 14))
			runs := elsewhere(random, 5, 4, usual)
			for i := range 3 {
				runs = append(runs, noisy(random, "m", fmt.Sprint(i), flat(epochs)(random), tc.past))
			}
			p, c := fitted(t, runs), configurationOf("m", 32, "x")
			r := noisy(random, "m", "now", tc.shape(random), tc.now)
			total := 0.0
			for _, e := range r.Epochs {
				total += e.Seconds
			}
			for _, slo := range []float64{.9 * total, 1.1 * total, 1.3 * total} {
				var done []evidence.Span
				elapsed, wasLikely := 0.0, false
				for i, e := range r.Epochs[:epochs-1] {
					done = append(done, evidence.Span{Epochs: 1, Seconds: e.Seconds, Under: c})
					elapsed += e.Seconds
					rest := p.Rest(c, done, epochs)
					d := rest.Seconds(epochs - i - 1)
					isLikely := slo > elapsed && d.Probability(slo-elapsed) >= promised
					if i > 0 && isLikely != wasLikely {
						crossings++
					}
					if wasLikely = isLikely; i == epochs/2 {
						width += d.Quantile(promised) / d.Median() / (3 * count)
					}
				}
			}
		}
		each := float64(crossings) / (3 * count)
		t.Logf("%-36s %.2f crossings, bound/median %.3f", tc.name, each, width)
		if each > tc.crossings || width > tc.width {
			t.Errorf("%s: %.2f crossings of a run, bound/median %.3f; want at most %g and %g",
				tc.name, each, width, tc.crossings, tc.width)
		}
	}
}
