package regress_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"courier/regress"
)

func TestPredict_RefusesRows(t *testing.T) {
	_, p := forest(t, paperLike(96, 1), small())
	for _, c := range []struct {
		says string
		row  []float64
	}{
		{"4 values for 5 features", []float64{64, 1, 1, 0}},
		{"6 values for 5 features", []float64{64, 1, 1, 0, 1, 1}},
		{"feature cpus is NaN", []float64{64, math.NaN(), 1, 0, 1}},
		{"feature processes is +Inf", []float64{64, 1, 1, 0, math.Inf(1)}},
	} {
		_, err := p.Predict(c.row)
		if !errors.Is(err, regress.ErrBadRow) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Predict(%g) = %v, want ErrBadRow with %q", c.row, err, c.says)
		}
	}
}

func TestPredict_MarksExtrapolation(t *testing.T) {
	d := paperLike(96, 1)
	d.Features[3].Levels = append(d.Features[3].Levels, "resnet")
	_, p := forest(t, d, small())
	for _, c := range []struct {
		name     string
		row      []float64
		distance float64
		between  bool
	}{
		{"a setting that was seen", []float64{64, 1, 1, 0, 1}, 0, false},
		{"between levels", []float64{100, 3, 2, 1, 6}, 0, true},
		{"one job more than ever", []float64{64, 1, 6, 0, 6}, 0.25, false},
		{"half the smallest batch", []float64{32, 1, 1, 0, 1}, 1.0 / 3, false},
		{"two features beyond, one between", []float64{960, 15, 1, 0, 15}, 2, true},
		{"a level never seen", []float64{64, 1, 1, 2, 1}, 1, false},
		{"no level at all", []float64{64, 1, 1, 0.5, 1}, 1, false},
	} {
		got, err := p.Predict(c.row)
		if err != nil || got.Extrapolated != (c.distance > 0) ||
			math.Abs(got.Distance-c.distance) > 1e-12 {
			t.Errorf("%s: Predict = %+v, %v, want distance %g", c.name, got, err, c.distance)
		}
		bound, promised := p.UpperBound(got, 0.9)
		within, _ := p.UpperBound(regress.Prediction{Value: got.Value}, 0.9)
		if promised == got.Extrapolated || got.Between != c.between ||
			(bound > within) != (got.Extrapolated || got.Between) {
			t.Errorf("%s: bound = %g (guaranteed %v), without distance %g; want a wider one outside levels",
				c.name, bound, promised, within)
		}
		if _, promised := p.Probability(got, 100); promised == got.Extrapolated {
			t.Errorf("%s: probability guaranteed = %v, want it unless extrapolated", c.name, promised)
		}
	}
}

// The bound at a level and the probability of a value below it come from the same
// table and must agree.
func TestUpperBound_AgreesWithProbability(t *testing.T) {
	for _, transform := range []regress.Transform{regress.Log, regress.None} {
		o := small()
		o.Transform = transform
		for _, rows := range []int{96, 1500} { // 1500 residuals are thinned out
			o.Trees = 5
			d := paperLike(rows, 1)
			r, p := forest(t, d, o)
			n := float64(r.Manifest.Calibration.Count)
			point, err := p.Predict(d.Row(0, nil))
			if err != nil {
				t.Fatal(err)
			}
			last := math.Inf(-1)
			for level := 0.005; level < 1; level += 0.005 {
				bound, ok := p.UpperBound(point, level)
				if want := math.Ceil((n+1)*level-1e-9) <= n; ok != want {
					t.Errorf("UpperBound(%g) of %g residuals: promised %v, want %v", level, n, ok,
						want)
				}
				if !ok {
					continue
				}
				probability, _ := p.Probability(point, bound)
				if probability < level-1e-9 || probability > level+1.5/min(n, 1000)+0.001 {
					t.Errorf("P(target <= bound at %g) = %g, want about the confidence",
						level, probability)
				}
				if bound < last {
					t.Errorf("bound at %g = %g, want at least %g as at the lower confidence",
						level, bound, last)
				}
				last = bound
				if less, _ := p.Probability(point, math.Nextafter(bound, math.Inf(-1))); less > probability {
					t.Errorf("probability of a lower limit = %g, want at most %g", less, probability)
				}
			}
		}
	}
}

func TestUpperBound_RefusesLevels(t *testing.T) {
	_, p := forest(t, paperLike(96, 1), small())
	for _, level := range []float64{
		0, 1, -1, 2, math.NaN(), 0.995,
	} { // 0.995 of 97 is beyond the 96th residual
		if bound, ok := p.UpperBound(regress.Prediction{Value: 10}, level); ok ||
			!math.IsInf(bound, 1) {
			t.Errorf("UpperBound(%g) = %g, %v, want none", level, bound, ok)
		}
	}
	if _, ok := p.Probability(regress.Prediction{Value: 10}, math.NaN()); ok {
		t.Error("the probability of NaN is guaranteed")
	}
	o := small()
	o.Folds = -1
	_, uncalibrated := forest(t, paperLike(96, 1), o)
	if _, ok := uncalibrated.UpperBound(regress.Prediction{Value: 10}, 0.5); ok {
		t.Error("a regressor without calibration guarantees a bound")
	}
	if _, ok := uncalibrated.Probability(regress.Prediction{Value: 10}, 10); ok {
		t.Error("a regressor without calibration guarantees a probability")
	}
}

func TestPredictor_AllocatesNothing(t *testing.T) {
	_, p := forest(t, paperLike(96, 1), small())
	row := []float64{64, 2, 3, 1, 6}
	allocations := testing.AllocsPerRun(100, func() {
		point, err := p.Predict(row)
		if err != nil {
			t.Fatal(err)
		}
		p.UpperBound(point, 0.9)
		p.Probability(point, 20)
	})
	if allocations != 0 {
		t.Errorf("a prediction allocates %g times, want 0", allocations)
	}
}
