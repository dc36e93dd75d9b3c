// Package figures compares simulated figures with published ones.
package figures

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Figure compares a ratio with the published one.
type Figure struct {
	Name    string  `json:"name"`
	Target  float64 `json:"target"`  // published
	Reached float64 `json:"reached"` // mean, or middle of Low and High
	Low     float64 `json:"low"`     // of the cases of the variant, or of the interval of their mean
	High    float64 `json:"high"`
	Variant string  `json:"variant"`
	IsMet   bool    `json:"met"`
	kind    kind
	isMean  bool // Low and High are the interval of a mean
}

// kind is what the ratios of a figure are.
type kind int

const (
	reduction kind = iota // of a time or a cost, negative if it is larger
	increase              // of a speed
	level                 // at least the target
	limit                 // at most the target
	count                 // at most the target, a number of things instead of a ratio
)

// Comparisons are the figures of a system.
type Comparisons struct {
	Figures []Figure `json:"figures"`
}

// tolerance is the rounding of simulated times, as a ratio.
const tolerance = 0.001

// Add adds a figure with the reductions of a time or a cost in all cases. It is met if each case
// reaches the target or, with best, if one does.
func (c *Comparisons) Add(name string, target float64, variant string, reached []float64, best bool) {
	f := c.add(reduction, name, target, variant, reached)
	f.IsMet = f.Low >= target-tolerance || best && f.High >= target
}

// AddIncrease adds a figure with the relative increases in all cases. It is met if each reaches the
// target.
func (c *Comparisons) AddIncrease(name string, target float64, variant string, reached []float64) {
	c.add(increase, name, target, variant, reached)
}

// AddLevel adds a figure with ratios that should be at least the target in all cases.
func (c *Comparisons) AddLevel(name string, target float64, variant string, reached []float64) {
	c.add(level, name, target, variant, reached)
}

// AddLimit adds a figure with ratios that should be at most the target in all cases.
func (c *Comparisons) AddLimit(name string, target float64, variant string, reached []float64) {
	f := c.add(limit, name, target, variant, reached)
	f.IsMet = f.High <= target
}

// AddCount adds a figure with numbers of things that should be at most the target in all cases.
func (c *Comparisons) AddCount(name string, target float64, variant string, reached []float64) {
	f := c.add(count, name, target, variant, reached)
	f.IsMet = f.High <= target
}

// Interval is a mean of cases with its 95 % interval.
type Interval struct{ Reached, Low, High float64 }

// AddReductions adds a figure with the mean reduction of a time or a cost. It is met if the mean
// reaches the target.
func (c *Comparisons) AddReductions(name string, target float64, variant string, reached Interval) {
	c.addInterval(reduction, name, target, variant, reached)
}

// AddLevels adds a figure with the mean of ratios. It is met if the mean reaches the target.
func (c *Comparisons) AddLevels(name string, target float64, variant string, reached Interval) {
	c.addInterval(level, name, target, variant, reached)
}

func (c *Comparisons) addInterval(k kind, name string, target float64, variant string, i Interval) {
	f := c.add(k, name, target, variant, []float64{i.Low, i.High})
	f.Reached, f.isMean = i.Reached, true
	f.IsMet = i.Reached >= target-tolerance
}

func (c *Comparisons) add(k kind, name string, target float64, variant string, reached []float64) *Figure {
	f := Figure{
		Name: name, Target: target, Variant: variant, kind: k,
		Low: slices.Min(reached), High: slices.Max(reached),
	}
	f.Reached = (f.Low + f.High) / 2
	f.IsMet = f.Low >= target-tolerance
	c.Figures = append(c.Figures, f)
	return &c.Figures[len(c.Figures)-1]
}

// WriteText writes the figures as a table in percent: of changes, or of ratios.
func (c *Comparisons) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "variant\tfigure\ttarget\treached\tmet\t")
	for i := range c.Figures {
		f := &c.Figures[i]
		fmt.Fprintf(t, "%s\t%s\t%s%s\t%s\t%s\t\n", f.Variant, f.Name, f.kind.text(f.Target), f.kind.unit(),
			f.reached(), f.met())
	}
	return t.Flush()
}

// reached returns what was reached as text: a range, or a mean with its interval.
func (f *Figure) reached() string {
	first, last := f.Low, f.High
	if f.kind == reduction {
		first, last = last, first
	}
	text := fmt.Sprintf("%s to %s%s", f.kind.text(first), f.kind.text(last), f.kind.unit())
	if f.isMean {
		return fmt.Sprintf("%s%s (%s)", f.kind.text(f.Reached), f.kind.unit(), text)
	}
	return text
}

// met returns whether the target was met as text.
func (f *Figure) met() string {
	switch {
	case f.IsMet && f.kind == reduction && !f.isMean && f.Low < f.Target-tolerance:
		return "yes, by the best"
	case f.IsMet:
		return "yes"
	}
	return "no"
}

func (k kind) unit() string {
	if k == count {
		return ""
	}
	return " %"
}

// text returns a number as text: a change of a time or speed in percent, or as it is.
func (k kind) text(ratio float64) string {
	text := ""
	switch k {
	case reduction:
		text = fmt.Sprintf("%+.1f", -100*ratio)
	case count:
		text = fmt.Sprintf("%.1f", ratio)
	case increase:
		text = fmt.Sprintf("%+.1f", 100*ratio)
	default:
		text = fmt.Sprintf("%.1f", 100*ratio)
	}
	if text == "-0.0" || text == "+0.0" || text == "0.0" {
		return "0"
	}
	return text
}
