package tuning

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/tune/halving"
)

// losses returns the losses of the first epochs of a curve with relative noise.
func losses(random *rand.Rand, epochs int, noise float64, curve func(epoch float64) float64) (all []float64) {
	for e := 1; e <= epochs; e++ {
		all = append(all, curve(float64(e))*(1+noise*random.NormFloat64()))
	}
	return all
}

var curves = map[string]func(epoch float64) float64{
	familyHyperbolic:  func(e float64) float64 { return 1/(0.04*e+0.5) + 0.1 },
	familyExponential: func(e float64) float64 { return 2*math.Pow(0.97, e) + 0.1 },
}

// Without noise, the family and the epoch of the target are found exactly.
func TestForecastLoss_FindsTheCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for family, curve := range curves {
		f, ok := forecastLoss(losses(random, 50, 0, curve), curve(100), 300, 0.9)
		if !ok || f.Family != family || math.Abs(f.Median-100) > 2 || f.Low > f.Median || f.High < f.Median {
			t.Errorf("%s: %+v, %t; want 100 epochs of that family", family, f, ok)
		}
	}
}

// With 2 % noise, about 90 % of the intervals at that confidence have the true number of epochs.
func TestForecastLoss_CoversTheTarget(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for family, curve := range curves {
		covered := 0
		const runs = 100
		for range runs {
			f, ok := forecastLoss(losses(random, 60, 0.02, curve), curve(100), 300, 0.9)
			if ok && f.Low <= 101 && f.High >= 99 {
				covered++
			}
		}
		if covered < 80 {
			t.Errorf("%s: %d of %d intervals have the true number of epochs, want about 90", family, covered, runs)
		}
	}
}

func TestForecastLoss_RefusesWhatIsNoCurve(t *testing.T) {
	for name, all := range map[string][]float64{
		"too few":      {3, 2, 1, 0.5},
		"negative":     {3, 2, 1, -1, 0.5, 0.4},
		"not a number": {3, 2, math.NaN(), 1, 0.5, 0.4},
		"infinite":     {math.Inf(1), 2, 1.5, 1, 0.5, 0.4},
		"rising":       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"out of reach": {3, 2, 1.5, 1.25, 1.125, 1.0625, 1.03125, 1.015625, 1.0078125},
	} {
		if f, ok := forecastLoss(all, 0.3, 100, 0.9); ok {
			t.Errorf("%s: %+v, want no forecast", name, f)
		}
	}
}

func TestLossForecast_NeedsReplan(t *testing.T) {
	f := lossForecast{Median: 100, Low: 80, High: 130}
	for _, c := range []struct {
		planned, done float64
		want          bool
	}{
		{100, 50, false},
		{104, 50, false}, // 4 of 54 remaining epochs
		{106, 50, true},  // 6 of 56
		{75, 10, true},   // outside of the interval
		{140, 10, true},
		{50, 50, true}, // it should have ended
	} {
		if got := f.needsReplan(c.planned, c.done); got != c.want {
			t.Errorf("needsReplan(%g, %g) = %t, want %t", c.planned, c.done, got, c.want)
		}
	}
}

func TestReplanTraining(t *testing.T) {
	front := []halving.TrialOption{{Seconds: 10, Cost: 1}, {Seconds: 5, Cost: 2}, {Seconds: 2, Cost: 8}}
	sure := lossForecast{Median: 100, Low: 95, High: 105}
	for name, c := range map[string]struct {
		view trainingView
		want trainingPlan
	}{
		"cheapest in time": {
			trainingView{Left: 2000, Option: -1, Forecast: sure}, trainingPlan{0, 100},
		},
		"faster for the median": {
			trainingView{Left: 700, Option: -1, Forecast: sure}, trainingPlan{1, 100},
		},
		"fastest for the upper bound": {
			trainingView{Left: 1000, Option: -1, Forecast: lossForecast{Median: 100, Low: 60, High: 500}},
			trainingPlan{2, 100},
		},
		"unchanged": {
			trainingView{Left: 700, Option: 1, PlannedEpochs: 102, Forecast: sure},
			trainingPlan{1, 102},
		},
		"not worth a switch": {
			trainingView{
				Done: 90, Left: 700, Option: 1, PlannedEpochs: 130, Forecast: sure, SwitchCost: 6,
			},
			trainingPlan{1, 100},
		},
		"worth a switch": {
			trainingView{
				Done: 90, Left: 700, Option: 1, PlannedEpochs: 130, Forecast: sure, SwitchCost: 4,
			},
			trainingPlan{0, 100},
		},
	} {
		if got := replanTraining(front, c.view); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// No losses crash the forecast, and its interval has its median.
func FuzzForecastLoss(f *testing.F) {
	f.Add(3.0, 2.0, 1.5, 1.2, 1.1, 1.05, 0.9)
	f.Add(1e300, 1e-300, 1.0, 1.0, 1.0, 1.0, 0.0)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g, target float64) {
		got, ok := forecastLoss([]float64{a, b, c, d, e, g}, target, 100, 0.9)
		if ok && !(got.Low <= got.Median && got.Median <= got.High && got.High <= 100) {
			t.Fatalf("%+v", got)
		}
	})
}
