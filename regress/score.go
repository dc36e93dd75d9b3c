package regress

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Estimate is a figure and its 95 % interval. Unknown values are NaN here and null in JSON, never
// 0.
type Estimate struct{ Value, Low, High float64 }

// MarshalJSON writes {"value":…,"low":…,"high":…} with null for NaN.
func (e Estimate) MarshalJSON() ([]byte, error) {
	known := func(x float64) *float64 {
		if !finite(x) {
			return nil
		}
		return &x
	}
	return json.Marshal(estimateJSON{known(e.Value), known(e.Low), known(e.High)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Estimate) UnmarshalJSON(data []byte) error {
	var read estimateJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	known := func(x *float64) float64 {
		if x == nil {
			return math.NaN()
		}
		return *x
	}
	*e = Estimate{known(read.Value), known(read.Low), known(read.High)}
	return nil
}

type estimateJSON struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Scores compare predictions with the truth, in the unit of the target. Intervals come from a
// bootstrap over configurations, not over examples.
type Scores struct {
	Examples int `json:"examples"`
	Settings int `json:"settings"`
	// MSE is the mean squared error, MAE the mean absolute one.
	MSE Estimate `json:"mse"`
	MAE Estimate `json:"mae"`
	// R2 is 1 - MSE / variance of the truth; unknown for variance 0.
	R2 Estimate `json:"r2"`
	// MAPE and MedianAPE are the mean and the median of |error / truth|; unknown if a truth is 0.
	// The median has no interval.
	MAPE      Estimate `json:"mape"`
	MedianAPE Estimate `json:"median_ape"`
}

// resamples returns the number of bootstrap samples of an interval: 1000, fewer for many
// configurations, whose intervals are narrow and slow.
func resamples(settings int) int { return min(1000, max(100, 20_000_000/settings)) }

// Score compares predictions with the truth. Group is the configuration of each example; nil means
// that every example is a configuration. All slices have the same length, at least 1.
func Score(truth, predicted []float64, group []int, seed uint64) Scores {
	sums := errorSums(truth, predicted, group)
	whole := moments{}
	for _, s := range sums {
		whole.add(s)
	}
	s := Scores{Examples: len(truth), Settings: len(sums)}
	s.MSE.Value, s.MAE.Value, s.R2.Value, s.MAPE.Value = whole.scores()
	s.MedianAPE = Estimate{medianAPE(truth, predicted), math.NaN(), math.NaN()}

	var draws [4][]float64
	random := stream(seed).split(bootstrapBranch)
	for range resamples(len(sums)) {
		sample := moments{}
		for range sums {
			sample.add(sums[random.below(len(sums))])
		}
		mse, mae, r2, mape := sample.scores()
		for k, x := range [4]float64{mse, mae, r2, mape} {
			draws[k] = append(draws[k], x)
		}
	}
	for k, e := range [4]*Estimate{&s.MSE, &s.MAE, &s.R2, &s.MAPE} {
		e.Low, e.High = middle95(draws[k])
	}
	return s
}

const bootstrapBranch = 1 << 41

// moments are the sums from which all scores except the median follow. The moments of several
// configurations add up, which makes a bootstrap over configurations cheap.
type moments struct{ n, y, y2, e2, e, ape float64 }

func (m *moments) add(o moments) {
	m.n += o.n
	m.y += o.y
	m.y2 += o.y2
	m.e2 += o.e2
	m.e += o.e
	m.ape += o.ape
}

func (m moments) scores() (mse, mae, r2, mape float64) {
	mse, r2 = m.e2/m.n, math.NaN()
	if variance := m.y2/m.n - m.y/m.n*m.y/m.n; variance > 1e-12*m.y2/m.n {
		r2 = 1 - mse/variance
	}
	return mse, m.e / m.n, r2, m.ape / m.n
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
			e:   math.Abs(e),
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

func medianAPE(truth, predicted []float64) float64 {
	errors := make([]float64, len(truth))
	for i, y := range truth {
		errors[i] = ape(y, y-predicted[i])
	}
	slices.Sort(errors) // NaN sorts first
	n := len(errors)
	if math.IsNaN(errors[0]) {
		return math.NaN()
	}
	return errors[(n-1)/2]/2 + errors[n/2]/2
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

// Pinball returns the mean pinball loss of predicted quantiles at a level in (0, 1): level times
// the shortfall, 1 - level times the excess.
func Pinball(truth, predicted []float64, level float64) float64 {
	sum := 0.0
	for i, y := range truth {
		e := y - predicted[i]
		sum += max(level*e, (level-1)*e)
	}
	return sum / float64(len(truth))
}

// Coverage is the share of truths that a bound at a level covers.
type Coverage struct {
	// Level of the bound, in (0, 1).
	Level float64 `json:"level"`
	// Ratio of covered examples, with its 95 % binomial interval (Wilson 1927).
	Ratio Estimate `json:"ratio"`
	// Examples with a finite bound, and examples without a bound (Refused).
	Examples int `json:"examples"`
	Refused  int `json:"refused"`
	// Pinball is the mean pinball loss of the bounds at Level, in the unit of
	// the target.
	Pinball Estimate `json:"pinball"`
	// Width is the median of bound / prediction.
	Width Estimate `json:"width"`
}

// Cover counts how often upper bounds at a level hold. A bound that is not finite counts as
// refused.
func Cover(truth, predicted, bound []float64, level float64) Coverage {
	c := Coverage{Level: level}
	held := 0
	var kept, width, bounds []float64
	for i, b := range bound {
		if !finite(b) {
			c.Refused++
			continue
		}
		if truth[i] <= b {
			held++
		}
		kept, bounds, width = append(kept, truth[i]), append(bounds, b), append(width,
			b/predicted[i])
	}
	c.Examples = len(kept)
	unknown := math.NaN()
	c.Ratio = wilson(float64(held), float64(c.Examples))
	c.Pinball, c.Width = Estimate{unknown, unknown, unknown}, Estimate{unknown, unknown, unknown}
	if c.Examples > 0 {
		slices.Sort(width)
		c.Pinball.Value = Pinball(kept, bounds, level)
		c.Width.Value = width[len(width)/2]
	}
	return c
}

// averaged returns the coverage of the same examples in several shuffles. The interval is as wide
// as for one shuffle, because repeated predictions are no further examples.
func (c Coverage) averaged(shuffles int) Coverage {
	size := float64(c.Examples) / float64(shuffles)
	c.Ratio = wilson(c.Ratio.Value*size, size)
	c.Examples, c.Refused = c.Examples/shuffles, c.Refused/shuffles
	return c
}

// wilson returns the score interval of a binomial ratio (Wilson 1927).
func wilson(held, size float64) Estimate {
	if size == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	const z = 1.959963984540054
	ratio := held / size
	middle := (ratio + z*z/(2*size)) / (1 + z*z/size)
	half := z / (1 + z*z/size) * math.Sqrt(ratio*(1-ratio)/size+z*z/(4*size*size))
	return Estimate{ratio, max(middle-half, 0), min(middle+half, 1)}
}

// Paired returns the mean of a - b, two losses of the same examples, and its 95 % interval by a
// bootstrap over configurations (nil: every example is a configuration). If the interval lies below
// 0, a is significantly better. An error wraps ErrBadExamples: the slices are empty or of different
// lengths.
func Paired(a, b []float64, group []int, seed uint64) (Estimate, error) {
	if len(a) == 0 || len(a) != len(b) || group != nil && len(group) != len(a) {
		return Estimate{}, fmt.Errorf(
			"%w: %d losses of one regressor, %d of the other and %d groups, want equal numbers",
			ErrBadExamples, len(a), len(b), len(group))
	}
	type sum struct{ difference, count float64 }
	var sums []sum
	number := make(map[int]int)
	whole := sum{}
	for i := range a {
		g := i
		if group != nil {
			g = group[i]
		}
		n, known := number[g]
		if !known {
			n = len(sums)
			number[g] = n
			sums = append(sums, sum{})
		}
		sums[n].difference += a[i] - b[i]
		sums[n].count++
		whole.difference += a[i] - b[i]
		whole.count++
	}
	random := stream(seed).split(bootstrapBranch)
	var draws []float64
	for range resamples(len(sums)) {
		drawn := sum{}
		for range sums {
			s := sums[random.below(len(sums))]
			drawn.difference += s.difference
			drawn.count += s.count
		}
		draws = append(draws, drawn.difference/drawn.count)
	}
	e := Estimate{Value: whole.difference / whole.count}
	e.Low, e.High = middle95(draws)
	return e, nil
}

// maxExplained is the maximum number of examples of an explanation.
const maxExplained = 500

// Importance returns the influence of each feature on the predictions: the mean change of the
// logarithm (without Log: of the value) when the feature is shuffled among the examples (Breiman
// 2001), as shares that sum to 1, or zeros if nothing changes. An error wraps ErrBadRow.
func Importance(p *Predictor, d *Dataset, seed uint64) ([]float64, error) {
	rows := spreadRows(d.Len())
	shares, total := make([]float64, len(d.Features)), 0.0
	for f := range d.Features {
		random := stream(seed).split(uint64(f))
		mixed := slices.Clone(rows)
		random.shuffle(mixed)
		var row []float64
		for k, i := range rows {
			row = d.Row(i, row)
			before, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("example %d: %w", i, err)
			}
			row[f] = d.Columns[f][mixed[k]]
			after, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("example %d: %w", i, err)
			}
			shares[f] += math.Abs(p.fitted(after.Value)-p.fitted(before.Value)) / float64(len(rows))
		}
		total += shares[f]
	}
	for f := range shares {
		if total > 0 {
			shares[f] /= total
		}
	}
	return shares, nil
}

func (p *Predictor) fitted(value float64) float64 {
	if p.manifest.Transform == Log {
		return math.Log(value)
	}
	return value
}

// spreadRows returns at most maxExplained examples, evenly spaced.
func spreadRows(n int) []int {
	step := (n + maxExplained - 1) / maxExplained
	var rows []int
	for i := 0; i < n; i += max(step, 1) {
		rows = append(rows, i)
	}
	return rows
}

// PartialDependence returns the mean prediction over the examples with a feature set to each of
// some values (Friedman 2001), in the unit of the target; under Log the geometric mean. An error
// wraps ErrBadRow.
func PartialDependence(p *Predictor, d *Dataset, feature int, values []float64) ([]float64, error) {
	rows := spreadRows(d.Len())
	curve := make([]float64, len(values))
	var row []float64
	for k, x := range values {
		sum := 0.0
		for _, i := range rows {
			row = d.Row(i, row)
			row[feature] = x
			point, err := p.Predict(row)
			if err != nil {
				return nil, fmt.Errorf("feature %s at %g: %w", d.Features[feature].Name, x, err)
			}
			sum += p.fitted(point.Value) / float64(len(rows))
		}
		curve[k] = p.manifest.Transform.invert(sum)
	}
	return curve, nil
}
