//go:build unix

package trainer

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// A fit on a bounded past predicts the following jobs as well as a fit on the whole past.
// COURIER_QUALITY_JOBS sets the number of jobs per day.
func TestFit_IsAsGoodOnABoundedPast(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	jobs, o := 40, Options{Examples: 600}
	if n, err := strconv.Atoi(os.Getenv("COURIER_QUALITY_JOBS")); err == nil {
		jobs, o = n, Options{}
	}
	epochs := 20 * 30 * jobs
	all := NewLimitedPast(Limits{Runs: 1 << 30, Epochs: 1 << 30, SettingRuns: 1 << 30})
	few := NewLimitedPast(Limits{Runs: epochs / 60, Epochs: epochs / 4, SettingRuns: 20, Spans: 5 * jobs})
	y := newYear(func(e schemas.Event, sequence uint64) {
		all.Add(e, sequence)
		few.Add(e, sequence)
	})
	y.models = 3
	y.days(20, jobs)
	unbounded := fitOn(t, all, o)
	bounded := fitOn(t, few, o)
	later := NewPast()
	y.feed = func(e schemas.Event, sequence uint64) { later.Add(e, sequence) }
	y.days(3, jobs)
	held := later.Examples(schemas.TargetEpochTime)
	want, predicted := medianError(t, unbounded, held)
	got, too := medianError(t, bounded, held)
	_, kept := few.Len()
	_, known := all.Len()
	t.Logf("median error on %d epochs that followed: %.4f on all %d epochs, %.4f on %d (%d and %d predicted)",
		len(held), want, known, got, kept, predicted, too)
	if got > 1.1*want || float64(too) < 0.9*float64(predicted) {
		t.Errorf("median error = %.4f on a bounded past, want about %.4f; predicted %d, want about %d of %d",
			got, want, too, predicted, len(held))
	}
}

func fitOn(t *testing.T, p *Past, o Options) *evidence.Predictor {
	t.Helper()
	const target = schemas.TargetEpochTime
	files, err := Fit(t.Context(), target, p.Examples(target), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	predictor, err := evidence.Compile(stateOf(file.Manifest()).Regressor)
	if err != nil {
		t.Fatal(err)
	}
	return predictor
}

// medianError returns the median of |predicted / measured - 1|, and how many were predicted.
func medianError(t *testing.T, p *evidence.Predictor, held []Example) (median float64, predicted int) {
	t.Helper()
	var errors []float64
	for i := range held {
		e := p.Epochs(configurationOf(schemas.TargetEpochTime, &held[i], nil), 1)
		if e.Known() {
			errors = append(errors, math.Abs(math.Exp(e.Location)/held[i].Value-1))
		}
	}
	if len(errors) == 0 {
		t.Fatal("no example was predicted")
	}
	slices.SortFunc(errors, cmp.Compare[float64])
	return errors[len(errors)/2], len(errors)
}
