package regress_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress"
)

func TestFolds_KeepSettingsTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	group := make([]int, 500)
	for i := range group {
		group[i] = random.IntN(97) * 13
	}
	folds := regress.Folds(group, 5, 3)
	settings := make([]map[int]bool, 5)
	of := make(map[int]int)
	for i, fold := range folds {
		if known, seen := of[group[i]]; seen && known != fold {
			t.Fatalf("configuration %d is in the folds %d and %d, want one fold", group[i], known, fold)
		}
		of[group[i]] = fold
		if settings[fold] == nil {
			settings[fold] = make(map[int]bool)
		}
		settings[fold][group[i]] = true
	}
	for fold, s := range settings {
		if len(s) < 19 || len(s) > 20 {
			t.Errorf("fold %d has %d of 97 configurations, want 19 or 20", fold, len(s))
		}
	}
	if !slices.Equal(folds, regress.Folds(group, 5, 3)) || slices.Equal(folds,
		regress.Folds(group, 5, 4)) {
		t.Error("folds must depend on the seed only")
	}
	if got := regress.Folds([]int{8, 8, 9}, 5, 1); got[0] != got[1] || got[0] == got[2] {
		t.Errorf("Folds of two configurations = %d, want one fold for each", got)
	}
	if got := regress.Folds([]int{8, 8, 8}, 5, 1); got != nil {
		t.Errorf("Folds of one configuration = %d, want nil", got)
	}
}

func TestOutOfFold_ExcludesThePredictedConfiguration(t *testing.T) {
	d := paperLike(288, 1)
	folds := regress.Folds(d.Group, 5, 1)
	predicted, err := regress.OutOfFold(d, folds, func(train *regress.Dataset) (func([]float64) float64, error) {
		seen := make(map[[5]float64]bool)
		for i := range train.Len() {
			seen[[5]float64(train.Row(i, nil))] = true
		}
		return func(row []float64) float64 {
			if seen[[5]float64(row)] {
				return 1
			}
			return 0
		}, nil
	})
	if err != nil || len(predicted) != d.Len() || slices.Max(predicted) != 0 {
		t.Errorf("OutOfFold = %v…, %v, want 288 predictions of unseen configurations", predicted[:5], err)
	}
	failed := errors.New("no fit")
	if _, err := regress.OutOfFold(d, folds, func(*regress.Dataset) (func([]float64) float64, error) {
		return nil, failed
	}); !errors.Is(err, failed) {
		t.Errorf("OutOfFold = %v, want the error of the fit", err)
	}
	if _, err := regress.OutOfFold(d, folds[1:], nil); !errors.Is(err, regress.ErrBadOptions) {
		t.Errorf("OutOfFold = %v, want ErrBadOptions for folds of another length", err)
	}
}

func TestScore_ByHand(t *testing.T) {
	truth, predicted := []float64{10, 20, 30, 40}, []float64{12, 20, 27, 44}
	s := regress.Score(truth, predicted, []int{1, 1, 2, 2}, 1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"MSE", s.MSE.Value, (4 + 0 + 9 + 16) / 4.0},
		{"MAE", s.MAE.Value, (2 + 0 + 3 + 4) / 4.0},
		{"R2", s.R2.Value, 1 - 7.25/125},
		{"MAPE", s.MAPE.Value, (0.2 + 0 + 0.1 + 0.1) / 4},
		{"median APE", s.MedianAPE.Value, 0.1},
		{"settings", float64(s.Settings), 2},
		{"pinball at 0.9", regress.Pinball(truth, predicted, 0.9), (0.1*2 + 0.9*3 + 0.1*4) / 4},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s = %g, want %g", c.name, c.got, c.want)
		}
	}
	// Two configurations, drawn with replacement: MSE is 2, 7.25 or 12.5.
	if s.MSE.Low != 2 || s.MSE.High != 12.5 {
		t.Errorf("interval of MSE = %g to %g, want 2 to 12.5", s.MSE.Low, s.MSE.High)
	}
	constant := regress.Score([]float64{5, 5, 0}, []float64{5, 5, 0}, nil, 1)
	if !math.IsNaN(constant.MAPE.Value) || math.IsNaN(constant.R2.Value) {
		t.Errorf("scores with a target of 0 = %+v, want MAPE NaN and a known R2", constant)
	}
	if r2 := regress.Score([]float64{5, 5}, []float64{5, 6}, nil, 1).R2.Value; !math.IsNaN(r2) {
		t.Errorf("R2 about equal truths = %g, want unknown", r2)
	}
}

func TestCover_CountsAndRefuses(t *testing.T) {
	inf := math.Inf(1)
	c := regress.Cover([]float64{1, 2, 3, 4}, []float64{1, 1, 2, 2}, []float64{2, 2, 2, inf}, 0.5)
	if c.Examples != 3 || c.Refused != 1 || c.Ratio.Value != 2.0/3 || c.Width.Value != 2 {
		t.Errorf("Cover = %+v, want 2 of 3 covered, 1 refused", c)
	}
	// Wilson's interval for 2 of 3, by R's prop.test without correction.
	if math.Abs(c.Ratio.Low-0.2076596) > 1e-6 || math.Abs(c.Ratio.High-0.9385081) > 1e-6 {
		t.Errorf("interval = %g to %g, want 0.2077 to 0.9385", c.Ratio.Low, c.Ratio.High)
	}
	if none := regress.Cover([]float64{1}, []float64{1}, []float64{inf}, 0.9); !math.IsNaN(
		none.Ratio.Value,
	) || none.Refused != 1 {
		t.Errorf("Cover without bounds = %+v, want an unknown ratio", none)
	}
}

// On configurations that were never measured the
// coverage of the bound equals its confidence, on average over 100 studies.
func TestUpperBound_CoversNewSettings(t *testing.T) {
	if testing.Short() {
		t.Skip("a long computation without goroutines")
	}
	random := rand.New(rand.NewPCG(3, 3))
	const level = 0.9
	held, asked := 0, 0
	for study := range uint64(100) {
		d := paperLike(96, 100+study)
		settings := random.Perm(96)
		o := small()
		o.Trees, o.Seed = 12, study
		_, p := forest(t, d.Subset(settings[:64]), o)
		for _, i := range settings[64:] {
			point, err := p.Predict(d.Row(i, nil))
			if err != nil {
				t.Fatal(err)
			}
			bound, promised := p.UpperBound(point, level)
			if !promised {
				continue
			}
			asked++
			if d.Target[i] <= bound {
				held++
			}
		}
	}
	ratio := float64(held) / float64(asked)
	t.Logf("the bound at %g holds for %.4f of %d new configurations", level, ratio, asked)
	if ratio < level-0.01 || ratio > level+0.06 {
		t.Errorf("the bound at %g holds for %.4f of %d new configurations, want about its level",
			level, ratio, asked)
	}
}
