// Package figures reproduces the figures of published systems: FlowCon divides the CPU of a node by the
// fall of losses, NEARCHUS resizes trainings by their bottlenecks, and CE-scaling plans the stages of a
// tuning. Trainings run on simulated clusters under the policies of this repository.
//
// One rule decides whether a figure meets its target, for all systems. A figure is one condition, its
// variant. What it reached is the mean of the cases of the variant, which differ in random numbers
// only. It must be at least the target, or at most for limits, times of a known solution within a
// tolerance. A target that was printed with rounded digits tolerates half a unit of the last one
// (reported), a bar nothing. A figure without a target is neither met nor missed.
//
// All randomness comes from seeds. FlowCon, NEARCHUS and CEScaling may be called concurrently.
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
	kind    kind
	group   string // figures of a group with the same name are one row of the table; empty: none
}

// kind is what the numbers of a figure are.
type kind int

const (
	kindReduction kind = iota // of a time or a cost, negative if it is larger; at least the target
	kindLevel                 // at least the target
	kindLimit                 // at most the target
	kindSeconds               // as the target, a time
)

// Comparisons are the figures of a system.
type Comparisons struct {
	Figures        []Figure `json:"figures"`
	variant, group string
}

// begin sets the variant of the figures that are added from here on. Those of a group that have the same
// name are one row of the table.
func (c *Comparisons) begin(variant, group string) { c.variant, c.group = variant, group }

// add adds a figure that is the mean of all cases.
func (c *Comparisons) add(k kind, name string, t target, cases ...float64) {
	low, high := slices.Min(cases), slices.Max(cases)
	c.addInterval(k, name, t, min(max(mean(cases), low), high), low, high)
}

// addReductions adds a figure with the mean of at least two reductions of a time or a cost, and its
// 95 % interval.
func (c *Comparisons) addReductions(name string, t target, values []float64) {
	squares, m := 0.0, mean(values)
	for _, v := range values {
		squares += v * v
	}
	n := float64(len(values))
	half := 1.96 * math.Sqrt(max(0, squares/n-m*m)/max(1, n-1))
	c.addInterval(kindReduction, name, t, m, m-half, m+half)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func (c *Comparisons) addInterval(k kind, name string, t target, reached, low, high float64) {
	f := Figure{
		Name:    name,
		Reached: reached,
		Low:     low,
		High:    high,
		Variant: c.variant,
		AtMost:  k == kindLimit,
		kind:    k,
		group:   c.group,
	}
	if t.isSet {
		f.Target, f.IsMet = &t.value, new(t.isMet(k, reached))
	}
	c.Figures = append(c.Figures, f)
}

// target is the target of a figure. The zero value is no target.
type target struct {
	value     float64
	tolerance float64
	isSet     bool
}

// bar returns a target that must be reached exactly: a published result or a decided bar.
func bar(value float64) target { return within(value, 0) }

// reported returns a target that was measured elsewhere and printed with as many digits as the
// value has, at least two decimals: 0.5 stands for 50 %. Half a unit of the last digit is tolerated.
func reported(value float64) target {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(value, 'f', -1, 64), ".")
	return within(value, 0.5*math.Pow10(-max(2, len(decimals))))
}

// within returns a target that is met up to a tolerance.
func within(value, tolerance float64) target { return target{value, tolerance, true} }

// rounding is the tolerated error of computations.
const rounding = 1e-9

// isMet reports whether a figure of a kind meets the target.
func (t target) isMet(k kind, reached float64) bool {
	tolerance := t.tolerance + rounding
	switch k {
	case kindLimit:
		return reached <= t.value+tolerance
	case kindSeconds:
		return math.Abs(reached-t.value) <= tolerance
	}
	return reached >= t.value-tolerance
}
