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
	"strconv"
	"strings"
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
	kind    Kind
	group   string // figures of a group with the same name are one row of the table; empty: none
}

// Kind is what the numbers of a figure are.
type Kind int

// The kinds.
const (
	Reduction Kind = iota // of a time or a cost, negative if it is larger; at least the target
	Increase              // of a speed, at least the target
	Level                 // at least the target
	Limit                 // at most the target
	Count                 // at most the target, a number of things instead of a ratio
	Seconds               // as the target, a time
)

// Comparisons are the figures of a system.
type Comparisons struct {
	Figures        []Figure `json:"figures"`
	variant, group string
}

// Begin sets the variant of the figures that are added from here on. Those of a group that have the same
// name are one row of the table.
func (c *Comparisons) Begin(variant, group string) { c.variant, c.group = variant, group }

// Add adds a figure that is the mean of all cases.
func (c *Comparisons) Add(k Kind, name string, target Target, cases ...float64) {
	sum := 0.0
	for _, v := range cases {
		sum += v
	}
	low, high := slices.Min(cases), slices.Max(cases)
	c.add(k, name, target, interval{min(max(sum/float64(len(cases)), low), high), low, high})
}

// AddReductions adds a figure with the mean of at least two reductions of a time or a cost, and its
// 95 % interval.
func (c *Comparisons) AddReductions(name string, target Target, values []float64) {
	n := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	mean := sum / n
	half := 1.96 * math.Sqrt(max(0, squares/n-mean*mean)/max(1, n-1))
	c.add(Reduction, name, target, interval{mean, mean - half, mean + half})
}

type interval struct{ reached, low, high float64 }

func (c *Comparisons) add(k Kind, name string, target Target, i interval) {
	f := Figure{
		Name: name, Reached: i.reached, Low: i.low, High: i.high, Variant: c.variant,
		AtMost: k == Limit || k == Count, kind: k, group: c.group,
	}
	if target.isSet {
		isMet := target.isMet(k, i.reached)
		f.Target, f.IsMet = &target.value, &isMet
	}
	c.Figures = append(c.Figures, f)
}

// Target is the target of a figure. The zero value is no target.
type Target struct {
	value     float64
	tolerance float64
	isSet     bool
}

// Bar returns a target that must be reached exactly: a published result or a decided bar.
func Bar(value float64) Target {
	return Target{value: value, isSet: true}
}

// Reported returns a target that was measured elsewhere and printed with as many digits as the
// value has, at least two decimals: 0.5 stands for 50 %. Half a unit of the last digit is tolerated.
func Reported(value float64) Target {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(value, 'f', -1, 64), ".")
	return Within(value, 0.5*math.Pow10(-max(2, len(decimals))))
}

// Within returns a target that is met up to a tolerance.
func Within(value, tolerance float64) Target {
	return Target{value: value, tolerance: tolerance, isSet: true}
}

// rounding is the tolerated error of computations.
const rounding = 1e-9

// isMet reports whether a figure of a kind meets the target.
func (t Target) isMet(k Kind, reached float64) bool {
	tolerance := t.tolerance + rounding
	switch k {
	case Limit, Count:
		return reached <= t.value+tolerance
	case Seconds:
		return math.Abs(reached-t.value) <= tolerance
	}
	return reached >= t.value-tolerance
}
