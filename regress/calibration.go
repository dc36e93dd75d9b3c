package regress

import (
	"fmt"
	"math"
	"slices"
)

// Calibration is the table from which bounds and probabilities are read: how
// far out-of-fold predictions were from the truth, where no setting was on both
// sides. Residuals are truth - prediction, or log(truth / prediction) under Log.
//
// The bound at level c takes the ceil((n+1)c)-th smallest of n residuals, and
// there is none if that exceeds n (split conformal prediction: Lei et al. 2018;
// with folds: Barber et al. 2021). A probability is the same table read the
// other way, so that the two never contradict.
type Calibration struct {
	// Count is n, the number of residuals that were measured.
	Count int `json:"count"`
	// Residuals are all n, sorted, or 1000 of them: entry i of m is the one of
	// rank ceil((i+1) n/m).
	Residuals []float64 `json:"residuals"`
}

// mostResiduals is the longest table that a manifest holds.
const mostResiduals = 1000

// newCalibration sorts residuals and thins them out to mostResiduals.
func newCalibration(residuals []float64) Calibration {
	sorted := slices.Sorted(slices.Values(residuals))
	c := Calibration{Count: len(sorted)}
	kept := min(len(sorted), mostResiduals)
	c.Residuals = make([]float64, kept)
	for i := range c.Residuals {
		c.Residuals[i] = sorted[c.rank(i)-1]
	}
	return c
}

// rank of entry i among all n residuals, from 1 to n.
func (c *Calibration) rank(i int) int {
	m := len(c.Residuals)
	return ((i+1)*c.Count + m - 1) / m
}

// entry returns the first entry whose rank reaches level, and whether there is
// one. Without the small number, 0.07 of 100 would ask for the eighth.
func (c *Calibration) entry(level float64) (int, bool) {
	if !(level > 0 && level < 1) {
		return 0, false
	}
	rank := int(math.Ceil(float64(c.Count+1)*level - 1e-9))
	if rank > c.Count {
		return 0, false
	}
	return max(rank-1, 0) * len(c.Residuals) / c.Count, true
}

// check holds for a table that was read.
func (c *Calibration) check() error {
	if n := len(c.Residuals); n != min(c.Count, mostResiduals) || c.Count > math.MaxInt32 {
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
