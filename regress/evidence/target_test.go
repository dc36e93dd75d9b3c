package evidence_test

import (
	"fmt"
	"slices"
	"testing"

	"courier/regress/evidence"
)

// A higher target never has a higher probability, nor an earlier median, whatever the runs were: of one batch
// size or between two, on the same node type or another one.
func TestPassage_FallsWithTheTarget(t *testing.T) {
	for _, g := range mlperf(t, 3) {
		var runs []evidence.Run
		var levels []float64
		longest := 0
		for i, r := range g.runs[:5] {
			c := configurationOf("m", []int{64, 64, 128, 256, 256}[i], []string{"x", "y"}[i%2])
			runs = append(runs, evidence.Run{ID: fmt.Sprint(i), Configuration: c, Epochs: r})
			for _, e := range r {
				longest = max(longest, e.Number)
				if e.HasAccuracy {
					levels = append(levels, e.Accuracy)
				}
			}
		}
		slices.Sort(levels)
		p := fitted(t, runs)
		for _, batch := range []int{64, 96, 128, 160, 256} {
			for _, n := range []int{longest/4 + 1, longest/2 + 1, longest, 2 * longest} {
				last, median := 1.0, 0
				for _, level := range levels {
					a := p.Passage(configurationOf("m", batch, "x"), level)
					if !a.Promisable {
						break
					}
					by, epochs := a.By(n), a.Epochs(0.5, 1000)
					if by > last+1e-9 || epochs < median {
						t.Fatalf("%s, batch size %d, accuracy %g: by epoch %d with probability %g, median %d; "+
							"a lower one %g, %d", g.benchmark, batch, level, n, by, epochs, last, median)
					}
					last, median = by, epochs
				}
			}
		}
	}
}
