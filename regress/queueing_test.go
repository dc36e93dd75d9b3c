package regress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// The baselines of the ICPE 2021 study on its recovered runs, with five folds of whole
// configurations: medians of 20 shuffles.
func TestBaselines_OnTheRecoveredRuns(t *testing.T) {
	d := recovered(t)
	group, seen := make([]int, d.Len()), map[string]int{}
	for i := range group {
		key := fmt.Sprint(d.Row(i, nil))
		if _, known := seen[key]; !known {
			seen[key] = len(seen)
		}
		group[i] = seen[key]
	}

	for _, c := range []struct {
		baseline       regress.Baseline
		largestMSE     float64
		smallestMedian float64 // R2
	}{
		{regress.LinearBaseline(), 24000, 0.37},
		{regress.QueueingBaseline(d), 6100, 0.83},
	} {
		var mse, r2 []float64
		for shuffle := range uint64(20) {
			predicted, err := regress.OutOfFold(d, regress.Folds(group, 5, shuffle), c.baseline.Fit)
			if err != nil {
				t.Fatal(err)
			}
			s := regress.Score(d.Target, predicted, group, 1)
			mse, r2 = append(mse, s.MSE.Value), append(r2, s.R2.Value)
		}
		slices.Sort(mse)
		slices.Sort(r2)
		medianMSE, medianR2 := (mse[9]+mse[10])/2, (r2[9]+r2[10])/2
		t.Logf("%s: MSE %.0f, R2 %.3f", c.baseline.Name, medianMSE, medianR2)
		if medianMSE > c.largestMSE || medianR2 < c.smallestMedian {
			t.Errorf("%s: MSE %.0f, R2 %.3f, want at most %.0f and at least %.2f", c.baseline.Name,
				medianMSE, medianR2, c.largestMSE, c.smallestMedian)
		}
	}
}

func TestQueueingBaseline_NamesAMissingFeature(t *testing.T) {
	for _, c := range []struct {
		features []regress.Feature
		batches  []float64
	}{
		{[]regress.Feature{{Name: "b"}, {Name: "cpus"}, {Name: "njobs"}}, []float64{64}},
		{[]regress.Feature{{Name: "batch"}, {Name: "cpus"}, {Name: "njobs"}}, []float64{0}},
	} {
		d := &regress.Dataset{
			Features: c.features,
			Columns:  [][]float64{c.batches, {1}, {1}},
			Target:   []float64{1},
		}
		_, err := regress.QueueingBaseline(d).Fit(d)
		if err == nil || !strings.Contains(err.Error(), "needs a feature batch or batch_size") {
			t.Errorf("%v: %v, want an error that names the feature", c.features, err)
		}
	}
}
