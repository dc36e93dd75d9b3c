package regress

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
)

// CalibrationTable is the table of bounds and probabilities: the errors of out-of-fold predictions,
// with no configuration on both sides of a split. Residuals are truth - prediction, or log(truth /
// prediction) under Log.
//
// The bound at level c is the ceil((n+1)c)-th smallest of n residuals; there is none if that
// exceeds n (split conformal prediction: Lei et al. 2018; with folds: Barber et al. 2021). A
// probability reads the same table in reverse, so that the two never contradict.
type CalibrationTable struct {
	// Count is n, the number of measured residuals.
	Count int `json:"count"`
	// Residuals are sorted: all n, or 1000 of them, where entry i of m has rank ceil((i+1) n/m).
	Residuals []float64 `json:"residuals"`
	// Levels are the tables of single levels; nil if there are none.
	Levels *LevelTables `json:"levels,omitempty"`
}

// LevelTables are separate tables for the levels of a category with enough examples, so that a
// bound holds for each of them and not only on average (Mondrian conformal prediction: Vovk et al.
// 2005, chapter 4.5).
type LevelTables struct {
	// Feature is the index of the category.
	Feature int `json:"feature"`
	// Tables has an entry per level; count 0 refers to the shared table.
	Tables []CalibrationTable `json:"tables"`
}

// ownTable is the minimum number of examples of a level with its own table: with 50 the bound at
// 0.95 is the third largest residual.
const ownTable = 50

// calibrateRows returns the table of some examples, and the tables of the first category with
// enough examples of two or more levels.
func calibrateRows(d *Dataset, residuals []float64, rows []int) CalibrationTable {
	c := newCalibration(pick(residuals, rows))
	for f, feature := range d.Features {
		byLevel := make([][]float64, len(feature.Levels))
		enough := 0
		for _, i := range rows {
			if feature.Levels != nil {
				level := int(d.Columns[f][i])
				byLevel[level] = append(byLevel[level], residuals[i])
				if len(byLevel[level]) == ownTable {
					enough++
				}
			}
		}
		if enough < 2 {
			continue
		}
		c.Levels = &LevelTables{Feature: f, Tables: make([]CalibrationTable, len(byLevel))}
		for level, own := range byLevel {
			if c.Levels.Tables[level].Residuals = []float64{}; len(own) >= ownTable {
				c.Levels.Tables[level] = newCalibration(own)
			}
		}
		break
	}
	return c
}

// tableFor returns the table for a row.
func (c *CalibrationTable) tableFor(row []float64) *CalibrationTable {
	if k := c.level(row); k >= 0 {
		return &c.Levels.Tables[k]
	}
	return c
}

// level returns the level whose own table a row uses; -1 for the shared one.
func (c *CalibrationTable) level(row []float64) int {
	if c.Levels == nil {
		return -1
	}
	x := row[c.Levels.Feature]
	if x != math.Trunc(x) || x < 0 || x >= float64(len(c.Levels.Tables)) ||
		c.Levels.Tables[int(x)].Count == 0 {
		return -1
	}
	return int(x)
}

// maxResiduals is the length of the longest table in a manifest.
const maxResiduals = 1000

// newCalibration sorts residuals and keeps maxResiduals of them.
func newCalibration(residuals []float64) CalibrationTable {
	sorted := slices.Sorted(slices.Values(residuals))
	c := CalibrationTable{Count: len(sorted)}
	kept := min(len(sorted), maxResiduals)
	c.Residuals = make([]float64, kept)
	for i := range c.Residuals {
		c.Residuals[i] = sorted[c.rank(i)-1]
	}
	return c
}

// rank returns the rank of entry i among all n residuals, from 1 to n.
func (c *CalibrationTable) rank(i int) int {
	m := len(c.Residuals)
	return ((i+1)*c.Count + m - 1) / m
}

// entry returns the first entry whose rank reaches level, and whether there is one. The small
// number compensates rounding: 0.07 of 100 would give the eighth.
func (c *CalibrationTable) entry(level float64) (int, bool) {
	if !(level > 0 && level < 1) {
		return 0, false
	}
	rank := int(math.Ceil(float64(c.Count+1)*level - 1e-9))
	if rank > c.Count {
		return 0, false
	}
	return max(rank-1, 0) * len(c.Residuals) / c.Count, true
}

// checkLevels checks the tables of levels against the features of the manifest.
func (c *CalibrationTable) checkLevels(features []FeatureRange) error {
	if c.Levels == nil {
		return nil
	}
	f := c.Levels.Feature
	if f < 0 || f >= len(features) || len(features[f].Levels) == 0 ||
		len(features[f].Levels) != len(c.Levels.Tables) {
		return fmt.Errorf("calibration: %d tables for the levels of feature %d",
			len(c.Levels.Tables), f)
	}
	for i := range c.Levels.Tables {
		t := &c.Levels.Tables[i]
		if t.Levels != nil {
			return fmt.Errorf("calibration: the table of level %d has tables itself", i)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	return nil
}

// check checks a table of a manifest.
func (c *CalibrationTable) check() error {
	if n := len(c.Residuals); n != min(c.Count, maxResiduals) || c.Count > math.MaxInt32 {
		return fmt.Errorf("calibration: %d residuals represent %d examples", n, c.Count)
	}
	for i, r := range c.Residuals {
		if !finite(r) || i > 0 && r < c.Residuals[i-1] {
			return fmt.Errorf("calibration: residual %d is %g, want finite numbers in order", i, r)
		}
	}
	return nil
}

// move returns a prediction, in the unit of the target, shifted by a residual.
func (t Transform) move(value, residual float64) float64 {
	if t == Log {
		return value * math.Exp(residual)
	}
	return value + residual
}

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
	// maxMeasured is the maximum number of levels of a number. A
	// load measured in fractions has more values, or values of one configuration only.
	maxMeasured = 32
	// At most maxLeftOut levels of a feature are left out, each in a fit of at most
	// maxLeftOutRows examples, which suffice for their medians.
	maxLeftOut, maxLeftOutRows = 5, 500
	maxLeftOutResiduals        = 25
)

// measured returns the sorted levels of a number; nil if it has none. It has levels if there are 2
// to maxMeasured values, each in two configurations or more. It gets the value and the
// configuration, from 0, of each example.
func measured(values iter.Seq2[float64, int]) []float64 {
	const several = -1 // configurations
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

// settingsOf yields the values of a feature with their configurations.
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
// between. Features with Alone have none; the errors of other features suffice for them.
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
