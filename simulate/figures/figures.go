// Package figures compares simulated figures with published ones.
package figures

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Figure is the reduction of a time or a cost as a ratio, negative if it is larger.
type Figure struct {
	Name    string  `json:"name"`
	Target  float64 `json:"target"`  // published
	Reached float64 `json:"reached"` // middle of Low and High
	Low     float64 `json:"low"`     // of the cases of the variant
	High    float64 `json:"high"`
	Variant string  `json:"variant"`
	IsMet   bool    `json:"met"`
}

// Comparisons are the figures of a system.
type Comparisons struct {
	Figures []Figure `json:"figures"`
}

// tolerance is the rounding of simulated times, as a ratio.
const tolerance = 0.001

// Add adds a figure with the reductions of all cases. It is met if each case reaches the target or,
// with best, if one does.
func (c *Comparisons) Add(name string, target float64, variant string, reached []float64, best bool) {
	f := Figure{
		Name: name, Target: target, Variant: variant,
		Low: slices.Min(reached), High: slices.Max(reached),
	}
	f.Reached = (f.Low + f.High) / 2
	f.IsMet = f.Low >= target-tolerance || best && f.High >= target
	c.Figures = append(c.Figures, f)
}

// WriteText writes the figures as a table of changes in percent.
func (c *Comparisons) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "variant\tfigure\ttarget\treached\tmet\t")
	for _, f := range c.Figures {
		isMet := "no"
		switch {
		case f.IsMet && f.Low < f.Target-tolerance:
			isMet = "yes, by the best"
		case f.IsMet:
			isMet = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s %%\t%s to %s %%\t%s\t\n", f.Variant, f.Name, change(f.Target),
			change(f.High), change(f.Low), isMet)
	}
	return t.Flush()
}

// change returns a reduction as a change in percent.
func change(reduction float64) string {
	if text := fmt.Sprintf("%+.1f", -100*reduction); text != "-0.0" && text != "+0.0" {
		return text
	}
	return "0"
}
