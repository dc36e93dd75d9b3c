package regress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// The accuracy targets on the runs of the study: 77 runs of 72 configurations, grouped folds, the
// median of 20 shuffles.
func TestSelect_MeetsTheBarsOnTheRecoveredRuns(t *testing.T) {
	skipUnderRace(t)
	d := recovered(t)
	_, all, err := regress.Select(context.Background(), d, regress.SelectOptions{
		Confidence: 0.9,
		Shuffles:   2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if all.Candidates[0].Family != regress.FamilyGaussian || all.Winner != all.Candidates[0].Name {
		t.Errorf("winner %s, first candidate %s of family %s, want a Gaussian process", all.Winner,
			all.Candidates[0].Name, all.Candidates[0].Family)
	}
	if len(all.Baselines) != 2 || all.Baselines[0].MSE.Value < all.Candidates[0].MSE.Value {
		t.Errorf("baselines = %+v, want two that are worse than the winner", all.Baselines)
	}
	r, report, err := regress.Select(context.Background(), d, regress.SelectOptions{
		Families:   []string{all.Candidates[0].Family},
		Confidence: 0.9,
		Shuffles:   20,
	})
	if err != nil {
		t.Fatal(err)
	}
	j := report.Candidates[0]
	t.Logf("MSE %.0f (%.0f to %.0f), R2 %.4f (%.4f to %.4f), MAPE %.2f %% (%.2f to %.2f), "+
		"coverage %.3f", j.MSE.Value, j.MSE.Low, j.MSE.High,
		j.R2.Value, j.R2.Low, j.R2.High, 100*j.MAPE.Value, 100*j.MAPE.Low, 100*j.MAPE.High, j.Coverage.Value)
	if j.MSE.Value > 520 || j.R2.Value < 0.985 || j.MAPE.Value > 0.048 {
		t.Errorf("MSE %.0f, R2 %.4f, MAPE %.4f, want at most 520, at least 0.985, at most 0.048",
			j.MSE.Value, j.R2.Value, j.MAPE.Value)
	}
	// A level between others that was never measured is predicted within 10 %.
	for _, l := range report.Levels {
		if l.Between && l.MAPE > 0.10 {
			t.Errorf("%s %s left out: MAPE %.3f, want at most 0.10", l.Feature, l.Level, l.MAPE)
		}
	}
	// Twenty shuffles of 38 runs are not 760 runs.
	for _, g := range report.Groups {
		if c := g.Coverage; c.Examples != 38 && c.Examples != 39 || c.Ratio.High-c.Ratio.Low < 0.1 {
			t.Errorf("network %s: %d examples, %.3f (%.3f to %.3f), want the interval of 38",
				g.Level, c.Examples, c.Ratio.Value, c.Ratio.Low, c.Ratio.High)
		}
	}
	if r.Manifest.Scores == nil || len(report.HeldOut) != 77 {
		t.Errorf("%d examples held out with scores %v, want 77 and scores",
			len(report.HeldOut), r.Manifest.Scores)
	}
}

// Nested validation: a family is selected without each fold, and
// scored on that fold.
func TestSelect_MeetsTheBarsOnWhatItDidNotChooseBy(t *testing.T) {
	skipUnderRace(t)
	d := recovered(t)
	shuffles := uint64(1)
	if os.Getenv("COURIER_LONG") != "" {
		shuffles = 20
	}
	d.Group = make([]int, d.Len())
	for i := range d.Group { // equal features are one configuration
		for k := range i + 1 {
			if slices.Equal(d.Row(k, nil), d.Row(i, nil)) {
				d.Group[i] = k
				break
			}
		}
	}
	winners := map[string]int{}
	var mse, r2, mape []float64
	for shuffle := range shuffles {
		fit := func(train *regress.Dataset) (func(row []float64) float64, error) {
			r, report, err := regress.Select(context.Background(), train, regress.SelectOptions{
				Confidence: 0.9,
				Shuffles:   1,
				Seed:       shuffle,
			})
			if err != nil {
				return nil, err
			}
			winners[report.Winner]++
			p, err := regress.Compile(r)
			return func(row []float64) float64 {
				point, err := p.Predict(row)
				if err != nil {
					t.Error(err)
				}
				return point.Value
			}, err
		}
		predicted, err := regress.OutOfFold(d, regress.Folds(d.Group, 5, shuffle), fit)
		if err != nil {
			t.Fatal(err)
		}
		s := regress.Score(d.Target, predicted, d.Group, 1)
		mse, r2, mape = append(mse, s.MSE.Value), append(r2, s.R2.Value), append(mape, s.MAPE.Value)
	}
	for _, scores := range [][]float64{mse, r2, mape} {
		slices.Sort(scores)
	}
	n := len(mse)
	t.Logf("median of %d shuffles: MSE %.0f (%.0f to %.0f), R2 %.4f (%.4f to %.4f), "+
		"MAPE %.2f %% (%.2f to %.2f); chosen: %v", n, mse[n/2], mse[0], mse[n-1],
		r2[n/2], r2[0], r2[n-1], 100*mape[n/2], 100*mape[0], 100*mape[n-1], winners)
	if mse[n/2] > 520 || r2[n/2] < 0.985 || mape[n/2] > 0.048 {
		t.Errorf("MSE %.0f, R2 %.4f, MAPE %.4f, want at most 520, at least 0.985, at most 0.048",
			mse[n/2], r2[n/2], mape[n/2])
	}
}

// Correct monotone signs must not reduce accuracy.
func TestFitGaussian_SignsCostNothingOnTheRecoveredRuns(t *testing.T) {
	skipUnderRace(t)
	d := recovered(t)
	d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
	d.Features, d.Columns = d.Features[:4], d.Columns[:4] // without processes, which depend on the others
	var mse []float64
	for seed := range uint64(3) {
		r, err := regress.FitGaussian(context.Background(), d, regress.GaussianOptions{
			Transform: regress.Log,
			Seed:      seed,
			Starts:    1,
		})
		if err != nil {
			t.Fatal(err)
		}
		mse = append(mse, r.Manifest.Scores.MSE.Value)
	}
	slices.Sort(mse)
	if mse[1] > 520 {
		t.Errorf("median MSE = %.0f of %.0f, want at most 520", mse[1], mse)
	}
}

func TestSelect_RepeatsItself(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector; its goroutines meet in shorter tests, too")
	}
	var first []byte
	for _, threads := range []int{1, 2} {
		d := paperLike(96, 1)
		if threads == 2 {
			d = d.Subset(rand.New(rand.NewPCG(1, 1)).Perm(96))
		}
		r, report, err := regress.Select(context.Background(), d, regress.SelectOptions{
			Shuffles: 1,
			Threads:  threads,
			Families: []string{regress.FamilyForest, regress.FamilyLaw},
		})
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		told := append(append(r.EncodeModel(), manifest...), fmt.Sprintf("%+v", report)...)
		if first == nil {
			first = told
		} else if !bytes.Equal(first, told) {
			t.Error("order of examples or threads change the choice")
		}
	}
}

func TestSelect_RefusesSettings(t *testing.T) {
	for _, c := range []struct {
		o    regress.SelectOptions
		says string
	}{
		{regress.SelectOptions{Families: []string{"oracle"}}, `family is "oracle"`},
		{regress.SelectOptions{Confidence: 1}, "confidence is 1"},
		{regress.SelectOptions{Folds: 1}, "folds is 1"},
		{regress.SelectOptions{Folds: -1}, "-1 folds"},
		{regress.SelectOptions{Folds: 200}, "folds is 200 for 96 configurations"},
		{regress.SelectOptions{Shuffles: -1}, "-1 shuffles"},
		{regress.SelectOptions{Families: []string{}}, "no family suits"},
		{regress.SelectOptions{Transform: "square"}, `transform is "square"`},
	} {
		_, _, err := regress.Select(context.Background(), paperLike(96, 1), c.o)
		if !errors.Is(err, regress.ErrBadOptions) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Select(%+v) = %v, want ErrBadOptions with %q", c.o, err, c.says)
		}
	}
	if _, _, err := regress.Select(context.Background(), paperLike(12, 1), regress.SelectOptions{}); !errors.Is(
		err, regress.ErrTooFewExamples,
	) {
		t.Errorf("Select of 12 examples = %v, want ErrTooFewExamples", err)
	}
}

func TestSelect_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := regress.SelectOptions{Threads: 1, Progress: func(done, planned int) {
		if done == 2 {
			cancel()
		}
		if done > 3 {
			t.Errorf("%d of %d fits were done after cancellation, want at most 3", done, planned)
		}
	}}
	if _, _, err := regress.Select(ctx, paperLike(96, 1), o); !errors.Is(err, context.Canceled) {
		t.Errorf("Select = %v, want canceled", err)
	}
}

// A category whose levels differ in spread gets a table of residuals per level;
// encoding and decoding keep it.
func TestCalibration_OwnTablePerLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	d := simulate(random).runs(random.Perm(96), 288)
	for i := range d.Target {
		if d.Columns[3][i] == 1 {
			d.Target[i] *= math.Exp(0.4 * random.NormFloat64())
		}
	}
	r, err := regress.FitLaw(context.Background(), d, regress.LawOptions{Transform: regress.Log})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := r.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Load(r.EncodeModel(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	var width [2]float64
	for network := range width {
		point, err := p.Predict([]float64{128, 2, 3, float64(network), 6})
		if err != nil {
			t.Fatal(err)
		}
		bound, _ := p.UpperBound(point, 0.9)
		width[network] = bound / point.Value
		if probability, _ := p.Probability(point, bound); math.Abs(probability-0.9) > 0.02 {
			t.Errorf("network %d: probability at the bound = %g, want about 0.9", network, probability)
		}
	}
	if !(width[1] > 1.3*width[0]) {
		t.Errorf("bound / prediction = %g for the noisy network, want over 1.3 times %g of the other",
			width[1],
			width[0])
	}
	for _, spoil := range []func(c *regress.CalibrationTable){
		func(c *regress.CalibrationTable) { c.Levels.Feature = 0 },
		func(c *regress.CalibrationTable) { c.Levels.Tables = c.Levels.Tables[:1] },
		func(c *regress.CalibrationTable) { c.Levels.Tables[0].Count++ },
		func(c *regress.CalibrationTable) { slices.Reverse(c.Levels.Tables[1].Residuals) },
	} {
		r, err := regress.FitLaw(context.Background(), d,
			regress.LawOptions{Transform: regress.Log})
		if err != nil {
			t.Fatal(err)
		}
		spoil(&r.Manifest.Calibration)
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regress.Decode(r.EncodeModel(), manifest); !errors.Is(err, regress.ErrBadFile) {
			t.Errorf("Decode of a spoiled calibration = %v, want ErrBadFile", err)
		}
	}
}
