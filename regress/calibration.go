package regress

import (
	"fmt"
	"math"
	"slices"
)

// CalibrationTable is the table from which bounds and probabilities are read: how
// far out-of-fold predictions were from the truth, where no setting was on both
// sides. Residuals are truth - prediction, or log(truth / prediction) under Log.
//
// The bound at level c takes the ceil((n+1)c)-th smallest of n residuals, and
// there is none if that exceeds n (split conformal prediction: Lei et al. 2018;
// with folds: Barber et al. 2021). A probability is the same table read the
// other way, so that the two never contradict.
type CalibrationTable struct {
	// Count is n, the number of residuals that were measured.
	Count int `json:"count"`
	// Residuals are all n, sorted, or 1000 of them: entry i of m is the one of
	// rank ceil((i+1) n/m).
	Residuals []float64 `json:"residuals"`
	// Levels are tables of single levels, nil where there are none.
	Levels *LevelTables `json:"levels,omitempty"`
}

// LevelTables are tables of their own for the levels of a category that have
// enough examples: a bound then holds for each of them, not only over all
// (Mondrian conformal prediction: Vovk et al. 2005, chapter 4.5).
type LevelTables struct {
	// Feature is the index of the category.
	Feature int `json:"feature"`
	// Tables has an entry per level; one with a count of 0 stands for the shared table.
	Tables []CalibrationTable `json:"tables"`
}

// ownTable is how many examples a level needs for a table of its own: with 50
// the one for 0.95 is the third largest residual.
const ownTable = 50

// calibrateRows makes the table of some examples, and those of the first
// category of which two levels or more have enough.
func calibrateRows(d *Dataset, residuals []float64, rows []int) CalibrationTable {
	c := newCalibration(pick(residuals, rows))
	for f, feature := range d.Features {
		byLevel := make([][]float64, len(feature.Levels))
		enough := 0
		for _, i := range rows {
			if feature.Levels != nil {
				level := int(d.Columns[f][i])
				if byLevel[level] = append(byLevel[level], residuals[i]); len(byLevel[level]) == ownTable {
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

// of returns the table for a row.
func (c *CalibrationTable) of(row []float64) *CalibrationTable {
	if k := c.level(row); k >= 0 {
		return &c.Levels.Tables[k]
	}
	return c
}

// level returns the level whose own table a row has, -1 for the shared one.
func (c *CalibrationTable) level(row []float64) int {
	if c.Levels == nil {
		return -1
	}
	x := row[c.Levels.Feature]
	if x != math.Trunc(x) || x < 0 || x >= float64(len(c.Levels.Tables)) || c.Levels.Tables[int(x)].Count == 0 {
		return -1
	}
	return int(x)
}

// maxResiduals is the longest table that a manifest holds.
const maxResiduals = 1000

// newCalibration sorts residuals and thins them out to mostResiduals.
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

// rank of entry i among all n residuals, from 1 to n.
func (c *CalibrationTable) rank(i int) int {
	m := len(c.Residuals)
	return ((i+1)*c.Count + m - 1) / m
}

// entry returns the first entry whose rank reaches level, and whether there is
// one. Without the small number, 0.07 of 100 would ask for the eighth.
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

// checkLevels holds for the tables that were read with their features.
func (c *CalibrationTable) checkLevels(features []FeatureRange) error {
	if c.Levels == nil {
		return nil
	}
	f := c.Levels.Feature
	if f < 0 || f >= len(features) || len(features[f].Levels) == 0 || len(features[f].Levels) != len(c.Levels.Tables) {
		return fmt.Errorf("calibration: %d tables for the levels of feature %d", len(c.Levels.Tables), f)
	}
	for i := range c.Levels.Tables {
		t := &c.Levels.Tables[i]
		if t.Levels != nil {
			return fmt.Errorf("calibration: the table of level %d has tables", i)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	return nil
}

// check holds for a table that was read.
func (c *CalibrationTable) check() error {
	if n := len(c.Residuals); n != min(c.Count, maxResiduals) || c.Count > math.MaxInt32 {
		return fmt.Errorf("calibration: %d residuals stand for %d", n, c.Count)
	}
	for i, r := range c.Residuals {
		if !finite(r) || i > 0 && r < c.Residuals[i-1] {
			return fmt.Errorf("calibration: residual %d is %g, want finite numbers in order", i, r)
		}
	}
	return nil
}

// move moves a prediction, in the unit of the target, by a residual.
func (t Transform) move(value, residual float64) float64 {
	if t == Log {
		return value * math.Exp(residual)
	}
	return value + residual
}
