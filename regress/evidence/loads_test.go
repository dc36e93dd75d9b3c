package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress/evidence"
)

// loadedRun returns the parts of a run whose foreign load changes from epoch to epoch, its total and the
// load at its start.
func loadedRun(random *rand.Rand, id string, epochs int, effect, level, change float64) (
	parts []evidence.Run, total, first float64,
) {
	f := math.Max(0, math.Min(1, level+.2*random.NormFloat64()))
	first = f
	own := .02 * random.NormFloat64()
	for e := range epochs {
		c := configurationOf("m", 32, "x")
		c.ConcurrentJobs, c.ProcessesPerCore, c.ForeignCPURatio = 1, .5, f
		c = c.Banded()
		s := 10 * (1 + effect*f) * math.Exp(own+.02*random.NormFloat64())
		total += s
		at := slices.IndexFunc(parts, func(r evidence.Run) bool { return r.Configuration == c })
		if at < 0 {
			at = len(parts)
			parts = append(parts, evidence.Run{ID: fmt.Sprint(id, " ", at), Job: id, Configuration: c})
		}
		parts[at].Epochs = append(parts[at].Epochs, evidence.EpochRecord{Number: e + 1, Seconds: s})
		f = math.Max(0, math.Min(1, f+change*random.NormFloat64()))
	}
	return parts, total, first
}

// The bound of a fresh run holds although the foreign load changes during the runs, and the median is not
// worse than the mean of the past runs.
func TestTime_ForeignLoadsChange(t *testing.T) {
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
	for _, tc := range []struct {
		effect, change float64 // of the load on the time, and of the load from epoch to epoch
		past           int
		width          float64 // bound over median, at most
	}{
		{0, .3, 3, 1.2}, {.5, 0, 3, 1.2}, {.5, .1, 1, 1.4}, {.5, .1, 10, 1.25}, {.5, .3, 1, 1.5}, {.5, .3, 10, 1.4},
	} {
		const count = 200
		held, off, simple := 0.0, 0.0, 0.0
		var widths []float64
		for seed := range uint64(count) {
			random := rand.New(rand.NewPCG(seed, 31))
			runs, mean := elsewhere(random, 5, 4, noise{.02, .02, 0}), 0.0
			for i := range tc.past {
				parts, total, _ := loadedRun(random, fmt.Sprint("m", i), 12, tc.effect, .4, tc.change)
				runs = append(runs, parts...)
				mean += total / float64(tc.past)
			}
			_, took, first := loadedRun(random, "now", 12, tc.effect, .4, tc.change)
			c := configurationOf("m", 32, "x")
			c.ConcurrentJobs, c.ProcessesPerCore, c.ForeignCPURatio = 1, .5, first
			d := fitted(t, runs).Time(c, 12)
			off += math.Abs(d.Median()/took-1) / count
			simple += math.Abs(mean/took-1) / count
			widths = append(widths, d.Quantile(.95)/d.Median())
			if took <= d.Quantile(.95) {
				held += 1. / count
			}
		}
		slices.Sort(widths)
		width := widths[count/2]
		t.Logf("%+v: coverage %.3f, error %.3f, of the mean %.3f, bound/median %.2f", tc, held, off, simple, width)
		if held < .95 || off > 1.05*simple+.005 || width > tc.width {
			t.Errorf("%+v: coverage %.3f, error %.3f, bound/median %.2f; want at least 0.95, about %.3f, at most %g",
				tc, held, off, width, simple, tc.width)
		}
	}
}
