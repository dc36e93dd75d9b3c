package baseline

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a figure and its 95 % interval. Unknown values are NaN here and null in JSON, never
// 0.
type Estimate struct{ Value, Low, High float64 }

// MarshalJSON writes {"value":…,"low":…,"high":…} with null for NaN.
func (e Estimate) MarshalJSON() ([]byte, error) {
	known := func(x float64) *float64 {
		if !isFinite(x) {
			return nil
		}
		return &x
	}
	return json.Marshal(struct {
		Value *float64 `json:"value"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
	}{known(e.Value), known(e.Low), known(e.High)})
}

// Scores compare predictions with the truth, in the unit of the target. Intervals come from a
// bootstrap over configurations, not over examples.
type Scores struct {
	Examples       int `json:"examples"`
	Configurations int `json:"configurations"`
	// MSE is the mean squared error.
	MSE Estimate `json:"mse"`
	// R2 is 1 - MSE / variance of the truth; unknown for variance 0.
	R2 Estimate `json:"r2"`
	// MAPE is the mean of |error / truth|; unknown if a truth is 0.
	MAPE Estimate `json:"mape"`
}

// resamples returns the number of bootstrap samples of an interval: 1000, fewer for many
// configurations, whose intervals are narrow and slow.
func resamples(configurations int) int { return min(1000, max(100, 20_000_000/configurations)) }

// Score compares predictions with the truth. Group is the configuration of each example; nil means
// that every example is a configuration. All slices have the same length, at least 1.
func Score(truth, predicted []float64, group []int, seed uint64) Scores {
	sums := errorSums(truth, predicted, group)
	whole := moments{}
	for _, s := range sums {
		whole.add(s)
	}
	s := Scores{Examples: len(truth), Configurations: len(sums)}
	s.MSE.Value, s.R2.Value, s.MAPE.Value = whole.scores()

	var draws [3][]float64
	random := rand.New(rand.NewPCG(seed, 0))
	for range resamples(len(sums)) {
		sample := moments{}
		for range sums {
			sample.add(sums[random.IntN(len(sums))])
		}
		mse, r2, mape := sample.scores()
		for k, x := range [3]float64{mse, r2, mape} {
			draws[k] = append(draws[k], x)
		}
	}
	for k, e := range [3]*Estimate{&s.MSE, &s.R2, &s.MAPE} {
		e.Low, e.High = middle95(draws[k])
	}
	return s
}

// moments are the sums from which all scores follow. The moments of several
// configurations add up, which makes a bootstrap over configurations cheap.
type moments struct{ n, y, y2, e2, ape float64 }

func (m *moments) add(o moments) {
	m.n += o.n
	m.y += o.y
	m.y2 += o.y2
	m.e2 += o.e2
	m.ape += o.ape
}

func (m moments) scores() (mse, r2, mape float64) {
	mse, r2 = m.e2/m.n, math.NaN()
	if variance := m.y2/m.n - m.y/m.n*m.y/m.n; variance > 1e-12*m.y2/m.n {
		r2 = 1 - mse/variance
	}
	return mse, r2, m.ape / m.n
}

// errorSums returns the moments of each configuration in order of first appearance. Truths are
// relative to their mean, to keep the precision of y2.
func errorSums(truth, predicted []float64, group []int) []moments {
	center := 0.0
	for _, y := range truth {
		center += y / float64(len(truth))
	}
	var sums []moments
	number := make(map[int]int)
	for i, y := range truth {
		g := i
		if group != nil {
			g = group[i]
		}
		n, known := number[g]
		if !known {
			n = len(sums)
			number[g] = n
			sums = append(sums, moments{})
		}
		e := y - predicted[i]
		sums[n].add(moments{
			n:   1,
			y:   y - center,
			y2:  (y - center) * (y - center),
			e2:  e * e,
			ape: ape(y, e),
		})
	}
	return sums
}

func ape(truth, e float64) float64 {
	if truth == 0 {
		return math.NaN()
	}
	return math.Abs(e / truth)
}

// middle95 returns the 2.5 % and 97.5 % quantiles; NaN if any draw is NaN.
func middle95(draws []float64) (low, high float64) {
	slices.Sort(draws)
	if math.IsNaN(draws[0]) {
		return math.NaN(), math.NaN()
	}
	cut := len(draws) / 40
	return draws[cut], draws[len(draws)-1-cut]
}
