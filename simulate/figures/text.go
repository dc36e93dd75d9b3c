package figures

import (
	"fmt"
	"io"
)

// WriteText writes the figures as a table in percent, with a tab behind each cell. The figures of a
// group that have the same name are one row.
func (c *Comparisons) WriteText(out io.Writer) {
	fmt.Fprintln(out, "variant\tfigure\ttarget\treached\tmet\t")
	for _, row := range c.rows() {
		first := row[0]
		variant := first.Variant
		if len(row) > 1 {
			variant = first.group
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t\n", variant, first.Name, first.targetText(), reached(row), met(row))
	}
}

func (c *Comparisons) rows() (rows [][]*Figure) {
	type key struct{ group, name string }
	index := map[key]int{}
	for i := range c.Figures {
		f := &c.Figures[i]
		k := key{f.group, f.Name}
		at, isKnown := index[k]
		if f.group != "" && isKnown {
			rows[at] = append(rows[at], f)
			continue
		}
		index[k] = len(rows)
		rows = append(rows, []*Figure{f})
	}
	return rows
}

func (f *Figure) targetText() string {
	if f.Target == nil {
		return "-"
	}
	text := f.kind.text(*f.Target) + f.kind.unit()
	if f.AtMost {
		return "at most " + text
	}
	return text
}

// reached returns what a row reached as text: a range, or a mean with its range or interval.
func reached(row []*Figure) string {
	f := row[0]
	low, high := f.Low, f.High
	for _, other := range row {
		low, high = min(low, other.Low), max(high, other.High)
	}
	if f.kind == kindReduction {
		low, high = high, low
	}
	first, last, mean := f.kind.text(low), f.kind.text(high), f.kind.text(f.Reached)
	switch {
	case len(row) > 1:
		return fmt.Sprintf("%s to %s%s", first, last, f.kind.unit())
	case first == last:
		return mean + f.kind.unit()
	}
	return fmt.Sprintf("%s%s (%s to %s%s)", mean, f.kind.unit(), first, last, f.kind.unit())
}

// met returns as text whether a row met its target, or how many of its figures did.
func met(row []*Figure) string {
	number := 0
	for _, f := range row {
		if f.IsMet == nil {
			return "-"
		}
		if *f.IsMet {
			number++
		}
	}
	switch {
	case len(row) > 1:
		return fmt.Sprintf("%d of %d", number, len(row))
	case number == 1:
		return "yes"
	}
	return "no"
}

func (k kind) unit() string {
	if k == kindSeconds {
		return " s"
	}
	return " %"
}

// text returns a number as text: a change of a time in percent, or as it is.
func (k kind) text(v float64) string {
	text := ""
	switch k {
	case kindReduction:
		text = fmt.Sprintf("%+.1f", -100*v)
	case kindSeconds:
		text = fmt.Sprintf("%.1f", v)
	default:
		text = fmt.Sprintf("%.1f", 100*v)
	}
	if text == "-0.0" || text == "+0.0" || text == "0.0" {
		return "0"
	}
	return text
}
