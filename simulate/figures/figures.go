// Package figures compares simulated figures with published ones.
//
// One rule decides whether a figure meets its target, for all systems. A figure is one condition, its
// variant. What it reached is the mean of the cases of the variant, which differ in random numbers
// only. It must be at least the target, or at most for limits, times of a known solution within a
// tolerance. A target that was printed with rounded digits tolerates half a unit of the last one
// (Reported), a bar nothing (Bar). A figure without a target is neither met nor missed.
package figures

import (
	"math"
	"slices"
)

// Figure compares a ratio with its target.
type Figure struct {
	Name    string   `json:"name"`
	Target  *float64 `json:"target"`  // nil: none
	Reached float64  `json:"reached"` // mean of the cases
	Low     float64  `json:"low"`     // of the cases of the variant, or of the interval of their mean
	High    float64  `json:"high"`
	Variant string   `json:"variant"`
	IsMet   *bool    `json:"met"`               // nil: no target
	AtMost  bool     `json:"at_most,omitempty"` // the target is an upper limit
	kind    kind
	group   string // figures of a group with the same name are one row of the table; empty: none
}

// kind is what the ratios of a figure are.
type kind int

const (
	reduction kind = iota // of a time or a cost, negative if it is larger
	increase              // of a speed
	level                 // at least the target
	limit                 // at most the target
	count                 // at most the target, a number of things instead of a ratio
	seconds               // as the target, a time
)

// Comparisons are the figures of a system.
type Comparisons struct {
	Figures []Figure `json:"figures"`
	group   string
}

// Group makes one row of the table of figures that are added from here on and have the same name. An
// empty group ends it.
func (c *Comparisons) Group(name string) { c.group = name }

// Add adds a figure with the reductions of a time or a cost in all cases.
func (c *Comparisons) Add(name string, target Target, variant string, cases ...float64) {
	c.addCases(reduction, name, target, variant, cases)
}

// AddIncrease adds a figure with the relative increases in all cases.
func (c *Comparisons) AddIncrease(name string, target Target, variant string, cases ...float64) {
	c.addCases(increase, name, target, variant, cases)
}

// AddLevel adds a figure with ratios that should be at least the target.
func (c *Comparisons) AddLevel(name string, target Target, variant string, cases ...float64) {
	c.addCases(level, name, target, variant, cases)
}

// AddLimit adds a figure with ratios that should be at most the target.
func (c *Comparisons) AddLimit(name string, target Target, variant string, cases ...float64) {
	c.addCases(limit, name, target, variant, cases)
}

// AddCount adds a figure with numbers of things that should be at most the target.
func (c *Comparisons) AddCount(name string, target Target, variant string, cases ...float64) {
	c.addCases(count, name, target, variant, cases)
}

// AddSeconds adds a figure with a time in seconds that should be the target.
func (c *Comparisons) AddSeconds(name string, target Target, variant string, cases ...float64) {
	c.addCases(seconds, name, target, variant, cases)
}

// interval is a mean of cases with its 95 % interval.
type interval struct{ reached, low, high float64 }

// meanOf returns a mean with its 95 % interval.
func meanOf(values []float64) interval {
	n := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	mean := sum / n
	half := 1.96 * math.Sqrt(max(0, squares/n-mean*mean)/max(1, n-1))
	return interval{mean, mean - half, mean + half}
}

// AddReductions adds a figure with the mean of at least two reductions of a time or a cost.
func (c *Comparisons) AddReductions(name string, target Target, variant string, values []float64) {
	c.add(reduction, name, target, variant, meanOf(values))
}

func (c *Comparisons) addCases(k kind, name string, target Target, variant string, cases []float64) {
	sum := 0.0
	for _, v := range cases {
		sum += v
	}
	low, high := slices.Min(cases), slices.Max(cases)
	mean := min(max(sum/float64(len(cases)), low), high)
	c.add(k, name, target, variant, interval{mean, low, high})
}

func (c *Comparisons) add(k kind, name string, target Target, variant string, i interval) {
	f := Figure{
		Name: name, Reached: i.reached, Low: i.low, High: i.high, Variant: variant,
		AtMost: k == limit || k == count, kind: k, group: c.group,
	}
	if target.isSet {
		isMet := target.isMet(k, i.reached)
		f.Target, f.IsMet = &target.value, &isMet
	}
	c.Figures = append(c.Figures, f)
}
