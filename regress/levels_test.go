package regress_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"courier/regress"
)

// signed returns the recovered runs with the monotone signs of any cluster, and
// without processes, which follow from two other features.
func signed(t *testing.T) *regress.Dataset {
	d := recovered(t)
	d.Features, d.Columns = slices.Clone(d.Features[:4]), d.Columns[:4]
	d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
	return d
}

// leftOut is a level of a feature, and the examples without and of it.
type leftOut struct {
	name       string
	between    bool
	kept, left *regress.Dataset
}

func levelsLeftOut(d *regress.Dataset) (all []leftOut) {
	for f, feature := range d.Features {
		levels := slices.Compact(slices.Sorted(slices.Values(d.Columns[f])))
		for k, level := range levels {
			var kept, left []int
			for i, x := range d.Columns[f] {
				if x == level {
					left = append(left, i)
				} else {
					kept = append(kept, i)
				}
			}
			all = append(all, leftOut{
				fmt.Sprintf("%s %g", feature.Name, level),
				feature.Levels == nil && k > 0 && k < len(levels)-1, d.Subset(kept),
				d.Subset(left),
			})
		}
	}
	return all
}

// Every level of the study is left out in turn, and a regressor is selected without
// it. Its predictions there must be plausible: close between measured levels;
// widened, flagged and bounded outside them; positive and monotone everywhere.
// Without COURIER_LONG these are an inner level, and an outer one without
// which trees happen to have the smallest loss.
func TestSelect_PredictsLeftOutLevels(t *testing.T) {
	skipUnderRace(t)
	for _, l := range levelsLeftOut(signed(t)) {
		if os.Getenv("COURIER_LONG") == "" && !slices.Contains([]string{
			"batch 128", "cpu 8",
		}, l.name) {
			continue
		}
		r, report, err := regress.Select(context.Background(), l.kept, regress.SelectOptions{
			Confidence: 0.9,
			Shuffles:   1,
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := regress.Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		missed, flagged, held := 0.0, 0, 0
		for i, truth := range l.left.Target {
			point, err := p.Predict(l.left.Row(i, nil))
			if err != nil {
				t.Fatal(err)
			}
			missed += math.Abs(point.Value/truth-1) / float64(l.left.Len())
			if point.Extrapolated {
				flagged++
			}
			bound, promised := p.UpperBound(point, 0.9)
			inside, _ := p.UpperBound(regress.Prediction{Value: point.Value}, 0.9)
			if promised == point.Extrapolated || point.Extrapolated && !(bound > 1.05*inside) {
				t.Errorf("without %s: %+v has the bound %g (%v), want it wider than %g", l.name,
					point, bound, promised, inside)
			}
			if truth <= bound {
				held++
			}
		}
		t.Logf("without %-18s %s misses it by %.1f %%, %d of %d under the bound, %d flagged",
			l.name, report.Winner, 100*missed, held, l.left.Len(), flagged)
		allowed := 0.30
		if l.between {
			allowed = 0.12
		}
		if missed > allowed || flagged != map[bool]int{false: l.left.Len()}[l.between] ||
			!l.between && held < l.left.Len()*9/10 {
			t.Errorf("without %s: %s misses it by %.3f, %d of %d under the bound, %d flagged",
				l.name, report.Winner, missed, held, l.left.Len(), flagged)
		}
		checkMonotone(t, l, p)
		checkSelection(t, l.name, report)
	}
}

// checkMonotone walks over batch sizes and jobs, far outside the support.
func checkMonotone(t *testing.T, l leftOut, p *regress.Predictor) {
	t.Helper()
	for i := range l.kept.Len() {
		for f, sign := range map[int]float64{0: -1, 2: 1} {
			row, last := l.kept.Row(i, nil), math.NaN()
			for x := 1.0; x <= 4096; x *= 1.1 {
				if row[f] = x; f == 2 {
					row[f] = x / 64
				}
				point, err := p.Predict(row)
				if err != nil || !(point.Value > 0) || math.IsInf(point.Value, 0) {
					t.Fatalf("without %s: Predict(%g) = %g, %v", l.name, row, point.Value, err)
				}
				if sign*(point.Value-last) < -1e-3*last {
					t.Fatalf("without %s: prediction at %g = %g after %g, want a monotone feature",
						l.name, row, point.Value, last)
				}
				last = point.Value
			}
		}
	}
}

// checkSelection checks that the family selected on held-out configurations also predicts well
// where nothing was measured: its error is less than twice the error of the best family.
func checkSelection(t *testing.T, name string, report regress.SelectReport) {
	t.Helper()
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, l := range report.Levels {
		if l.Between {
			sums[l.Method] += l.MAPE * float64(l.Count)
			counts[l.Method] += float64(l.Count)
		}
	}
	best := math.Inf(1)
	for method, sum := range sums {
		best = min(best, sum/counts[method])
	}
	if chosen := sums[report.Winner] / counts[report.Winner]; !(chosen <= 2*best) {
		t.Errorf("without %s: %s is chosen and misses levels between others by %.3f, the best by %.3f",
			name, report.Winner, chosen, best)
	}
}
