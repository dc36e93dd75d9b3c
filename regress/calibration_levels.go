package regress

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
)

// LeftOutLevel is a level of a number, such as a batch size, and the errors of a fit without it.
// Levels between others show how far to trust predictions between measured levels; the lowest and
// the highest show it for extrapolation.
type LeftOutLevel struct {
	// Feature is the index of the number, Level its value that was left out.
	Feature int     `json:"feature"`
	Level   float64 `json:"level"`
	// Distance from the nearest kept level, above 0, in ranges of the feature.
	Distance float64 `json:"distance"`
	// Residuals at the level in the unit of the fit, sorted, at most 25.
	Residuals []float64 `json:"residuals"`
}

const (
	// maxMeasured is how many different values a number can have as levels; a
	// load that was measured in fractions has more, or some in one setting only.
	maxMeasured = 32
	// maxLeftOut levels of a feature are fitted without, in at most
	// mostLeftOutRows examples: their medians tell enough.
	maxLeftOut, maxLeftOutRows = 5, 500
	maxLeftOutResiduals        = 25
)

// measured returns the sorted levels of a number; nil if it has none. It has levels if there are 2
// to maxMeasured values, each in two settings or more. It gets the value and the setting, from 0,
// of each example.
func measured(values iter.Seq2[float64, int]) []float64 {
	const several = -1 // settings
	setting, repeated := make(map[float64]int), 0
	for x, group := range values {
		switch first, known := setting[x]; {
		case !known && len(setting) == maxMeasured:
			return nil
		case !known:
			setting[x] = group
		case first != several && first != group:
			setting[x] = several
			repeated++
		}
	}
	if repeated < len(setting) || repeated < 2 {
		return nil
	}
	return slices.Sorted(maps.Keys(setting))
}

// settingsOf yields the values of a feature with their settings.
func (d *Dataset) settingsOf(f int) iter.Seq2[float64, int] {
	return func(yield func(x float64, group int) bool) {
		for i, x := range d.Columns[f] {
			if !yield(x, d.Group[i]) {
				return
			}
		}
	}
}

// gap returns the distance of x to the nearest level: in ranges of the feature, from least to most,
// or in ranges of its logarithm if that is larger.
func gap(x float64, levels []float64, least, most float64) float64 {
	above, _ := slices.BinarySearch(levels, x)
	far := math.Inf(1)
	for _, level := range levels[max(above-1, 0):min(above+1, len(levels))] {
		ranges := math.Abs(x/2-level/2) / (most/2 - least/2)
		if least > 0 {
			ranges = max(ranges, math.Abs(math.Log(x/level))/math.Log(most/least))
		}
		far = min(far, ranges)
	}
	return far
}

// levelCase is a level to leave out: its examples, the others, and its distance from these.
type levelCase struct {
	feature    int
	level      float64
	distance   float64
	kept, left []int
}

// levelCases returns the levels to leave out: for each feature its lowest, its highest and some
// between. Features that act alone have none; the errors of others suffice for them.
func (d *Dataset) levelCases() (cases []levelCase) {
	for f, feature := range d.Features {
		if !feature.chosen() || feature.Alone {
			continue
		}
		levels := measured(d.settingsOf(f))
		n := len(levels)
		if n < 3 { // with one level left the feature would be constant
			continue
		}
		last := -1
		for i := range min(n, maxLeftOut) {
			if k := i * (n - 1) / (min(n, maxLeftOut) - 1); k != last {
				cases = append(cases, d.levelCase(f, levels, k))
				last = k
			}
		}
	}
	return cases
}

func (d *Dataset) levelCase(f int, levels []float64, k int) levelCase {
	c := levelCase{feature: f, level: levels[k]}
	for i, x := range d.Columns[f] {
		if x == c.level {
			c.left = append(c.left, i)
		} else {
			c.kept = append(c.kept, i)
		}
	}
	others := slices.Delete(slices.Clone(levels), k, k+1)
	c.distance = gap(c.level, others, levels[0], levels[len(levels)-1])
	return c
}

// leftOut returns the errors at the level of a regressor that was fitted without it; nil if they
// are not finite.
func (c *levelCase) leftOut(
	d *Dataset, t Transform, predict func(row []float64) float64,
) *LeftOutLevel {
	var residuals, row []float64
	for i, truth := range t.apply(pick(d.Target, c.left)) {
		row = d.Row(c.left[i], row)
		residuals = append(residuals, truth-predict(row))
		if !finite(residuals[i]) {
			return nil
		}
	}
	sorted := slices.Sorted(slices.Values(residuals))
	kept := min(len(sorted), maxLeftOutResiduals)
	l := &LeftOutLevel{Feature: c.feature, Level: c.level, Distance: c.distance}
	for i := range kept {
		l.Residuals = append(l.Residuals, sorted[(2*i+1)*len(sorted)/(2*kept)])
	}
	return l
}

// thinned returns at most maxLeftOutRows examples, evenly spaced.
func (d *Dataset) thinned() *Dataset {
	if d.Len() <= maxLeftOutRows {
		return d
	}
	rows := make([]int, maxLeftOutRows)
	for i := range rows {
		rows[i] = (2*i + 1) * d.Len() / (2 * len(rows))
	}
	return d.Subset(rows)
}

// leaveLevelsOut fits without each level in turn and stores the errors at it. Levels without which
// no fit is possible are skipped.
func (m *Manifest) leaveLevelsOut(
	ctx context.Context, d *Dataset, cases []levelCase,
	fit func(train *Dataset) (func(row []float64) float64, error),
) error {
	for _, c := range cases {
		predict, err := fit(d.Subset(c.kept))
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		if missed := c.leftOut(d, m.Transform, predict); missed != nil {
			m.LeftOut = append(m.LeftOut, *missed)
		}
	}
	return nil
}

// widening is the slope of a bound: its widening per range of a feature.
type widening struct{ between, beyond float64 }

// widenings returns for each feature how steeply its bounds widen with the distance from its
// levels. The slope of a level that was left out is its median error over its distance; the
// steepest of a feature counts. Between levels, a feature without a slope gets the steepest of all
// features, or Spread if there is none. Outside the levels the slope is at least Spread.
func (m *Manifest) widenings() (slopes []widening, gauged bool) {
	slopes = make([]widening, len(m.Features))
	own, steepest := make([]bool, len(m.Features)), 0.0
	for _, l := range m.LeftOut {
		n := len(l.Residuals)
		missed := math.Abs(l.Residuals[(n-1)/2]/2 + l.Residuals[n/2]/2)
		slope := missed / max(l.Distance, 1./maxMeasured)
		s, levels := &slopes[l.Feature], m.Features[l.Feature].Measured
		if l.Level == levels[0] || l.Level == levels[len(levels)-1] {
			s.beyond = max(s.beyond, slope)
			continue
		}
		s.between, own[l.Feature] = max(s.between, slope), true
		steepest, gauged = max(steepest, slope), true
	}
	if !gauged {
		steepest = m.Spread
	}
	for f := range slopes {
		slopes[f].beyond = max(slopes[f].beyond, m.Spread)
		if !own[f] {
			slopes[f].between = steepest
		}
	}
	return slopes, gauged
}

// checkMeasured checks the levels of numbers in a manifest.
func (m *Manifest) checkMeasured() error {
	for _, f := range m.Features {
		n := len(f.Measured)
		if n == 0 {
			continue
		}
		if f.Levels != nil || n < 2 || n > maxMeasured || f.Measured[0] != f.Min ||
			f.Measured[n-1] != f.Max {
			return fmt.Errorf("feature %s: %d measured levels from %g to %g", f.Name, n, f.Min,
				f.Max)
		}
		for i, x := range f.Measured {
			if !finite(x) || i > 0 && !(x > f.Measured[i-1]) {
				return fmt.Errorf(
					"feature %s: measured level %d is %g, want finite numbers in order",
					f.Name, i, x)
			}
		}
	}
	for i, l := range m.LeftOut {
		if l.Feature < 0 || l.Feature >= len(m.Features) ||
			!slices.Contains(m.Features[l.Feature].Measured, l.Level) {
			return fmt.Errorf("left_out %d: level %g of feature %d was not measured", i, l.Level,
				l.Feature)
		}
		if !(l.Distance > 0) || !finite(l.Distance) || len(l.Residuals) == 0 ||
			len(l.Residuals) > maxLeftOutResiduals {
			return fmt.Errorf("left_out %d: distance %g and %d residuals", i, l.Distance,
				len(l.Residuals))
		}
		for k, r := range l.Residuals {
			if !finite(r) || k > 0 && r < l.Residuals[k-1] {
				return fmt.Errorf("left_out %d: residual %d is %g, want finite numbers in order",
					i, k, r)
			}
		}
	}
	return nil
}
