package regress

import (
	"fmt"
	"math"
	"slices"
)

// mostDropped is the largest share of examples that may be dropped; with more,
// something else is wrong.
const mostDropped = 0.05

// Dropped is how many examples were left out for one reason.
type Dropped struct {
	Reason string
	Count  int
}

// Clean returns a copy without the examples that break a rule: a feature or
// target that is not a finite number, a target outside [low, high], a weight
// that is negative or not finite. It also says how many were dropped and why,
// most frequent first. If they are more than 5 %, the error wraps ErrBadExamples
// and the reasons are returned, too. Durations are cleaned with a low of
// math.SmallestNonzeroFloat64, ratios with 0 and 1.
func (d *Dataset) Clean(low, high float64) (*Dataset, []Dropped, error) {
	if err := d.checkShape(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBadExamples, err)
	}
	var rows []int
	counts := make(map[string]int)
	for i := range d.Target {
		if reason := d.flaw(i, low, high); reason != "" {
			counts[reason]++
		} else {
			rows = append(rows, i)
		}
	}
	var dropped []Dropped
	for reason, count := range counts {
		dropped = append(dropped, Dropped{reason, count})
	}
	slices.SortFunc(dropped, func(a, b Dropped) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		if a.Reason < b.Reason {
			return -1
		}
		return 1
	})
	if bad := d.Len() - len(rows); float64(bad) > mostDropped*float64(d.Len()) {
		return nil, dropped, fmt.Errorf("%w: %d of %d are unusable, most often: %s",
			ErrBadExamples, bad, d.Len(), dropped[0].Reason)
	}
	return d.Subset(rows), dropped, nil
}

// flaw names what is wrong with an example, "" if nothing is.
func (d *Dataset) flaw(i int, low, high float64) string {
	for f, column := range d.Columns {
		if !finite(column[i]) {
			return fmt.Sprintf("feature %s is %g", d.Features[f].Name, column[i])
		}
	}
	switch y := d.Target[i]; {
	case math.IsNaN(y):
		return "target is NaN"
	case y <= 0 && low == math.SmallestNonzeroFloat64:
		return "target is 0 or below"
	case y < low:
		return fmt.Sprintf("target is below %g", low)
	case y > high || math.IsInf(y, 1):
		return fmt.Sprintf("target is above %g", high)
	}
	if d.Weight != nil && !(d.Weight[i] >= 0 && d.Weight[i] <= maxWeight) {
		return "weight is negative or not finite"
	}
	return ""
}
