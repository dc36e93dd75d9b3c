package regress

import (
	"fmt"
	"math"
	"slices"
)

// CalibrationTable is the table of bounds and probabilities: the errors of out-of-fold predictions,
// with no setting on both sides of a split. Residuals are truth - prediction, or log(truth /
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

// of returns the table for a row.
func (c *CalibrationTable) of(row []float64) *CalibrationTable {
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
			return fmt.Errorf("calibration: the table of level %d has tables", i)
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
		return fmt.Errorf("calibration: %d residuals stand for %d", n, c.Count)
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
