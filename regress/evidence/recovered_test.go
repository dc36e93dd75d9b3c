package evidence_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress/evidence"
)

// recovered reads the usable full-factorial runs of the Courier study.
func recovered(t testing.TB) []evidence.Run {
	t.Helper()
	const epochs = 10
	var runs []evidence.Run
	for _, row := range table(t, "courier-paper/measured_runs.csv") {
		if row["campaign"] != "fullfact" || row["time_suspect"] != "0" || row["time_s"] == "" {
			continue
		}
		r := evidence.Run{ID: row["run_id"],
			Configuration: evidence.Configuration{Model: row["network"],
				BatchSize: int(number(t, row["batch"])), CPUs: int(number(t, row["cpu"])),
				NodeLoad: evidence.NodeLoad{ConcurrentJobs: number(t, row["njobs"])}}}
		r.Epochs = []evidence.EpochRecord{{Number: epochs, Count: epochs, Seconds: number(t, row["time_s"])}}
		runs = append(runs, r)
	}
	return runs
}

// folds deals the configurations of runs into five folds.
func folds(runs []evidence.Run, shuffle uint64) map[evidence.Configuration]int {
	fold := map[evidence.Configuration]int{}
	var order []evidence.Configuration
	for _, r := range runs {
		if _, ok := fold[r.Configuration]; !ok {
			fold[r.Configuration] = 0
			order = append(order, r.Configuration)
		}
	}
	random := rand.New(rand.NewPCG(shuffle, 1))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, c := range order {
		fold[c] = i % 5
	}
	return fold
}

// outside returns the runs that are not in a fold.
func outside(runs []evidence.Run, fold map[evidence.Configuration]int, k int) []evidence.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r evidence.Run) bool {
		return fold[r.Configuration] == k
	})
}

// The recovered runs are predicted with no configuration on both sides of a split.
func TestFigures_RecoveredRuns(t *testing.T) {
	runs := recovered(t)
	var squares []float64
	var off, covered scoreMean
	for shuffle := range uint64(20) {
		fold := folds(runs, shuffle)
		var square scoreMean
		for k := range 5 {
			p := fitted(t, outside(runs, fold, k))
			for _, r := range runs {
				if fold[r.Configuration] != k {
					continue
				}
				got, took := p.Time(r.Configuration, r.Epochs[0].Number), r.Epochs[0].Seconds
				square.add((got.Median() - took) * (got.Median() - took))
				off.add(math.Abs(got.Median()/took - 1))
				covered.count(took <= got.Quantile(0.9))
			}
		}
		squares = append(squares, square.value())
	}
	slices.Sort(squares)
	t.Logf("%d runs: MSE %.0f (%.0f to %.0f), MAPE %.2f %%, coverage at 0.9 %.3f", len(runs),
		(squares[9]+squares[10])/2, squares[0], squares[19], 100*off.value(), covered.value())
	if off.value() > 0.048 || covered.value() < 0.85 {
		t.Error("want a MAPE of at most 4.8 %, and a coverage of 0.85 or more")
	}
}
