package collector

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"courier/schemas"
)

// adviceText returns an advice for people: what to run, why, and every
// alternative as a table. Figures that are not known are a dash.
func adviceText(a *schemas.Advice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "courier: job %s: %s", a.JobID, a.Decision)
	if c := a.Chosen; c != nil {
		fmt.Fprintf(&b, ": batch size %d, CPUs %d, epochs %d", c.BatchSize, c.CPUs, c.Epochs)
	}
	b.WriteByte('\n')
	if a.Message != "" {
		fmt.Fprintf(&b, "courier: %s\n", oneLine(a.Message))
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "   batch size\tCPUs\ttime\tat most\taccuracy\tSLO chance\t")
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		mark := " "
		if c := a.Chosen; c != nil && c.BatchSize == alt.BatchSize && c.CPUs == alt.CPUs && c.Epochs == alt.Epochs {
			mark = "*"
		}
		fmt.Fprintf(t, " %s %d\t%d\t%s\t%s\t%s\t%s\t%s\n", mark, alt.BatchSize, alt.CPUs, durationText(alt.PredictedSeconds), durationText(alt.UpperBoundSeconds),
			ratioText(alt.PredictedAccuracy), ratioText(alt.Probability), oneLine(alt.Reason))
	}
	_ = t.Flush() // a strings.Builder takes everything
	for i := range a.Menu {
		fmt.Fprintf(&b, "courier: or %s\n", a.Menu[i].Text())
	}
	return b.String()
}

const unknown = "-"

func durationText(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return rounded(secondsOf(*seconds)).String()
}

func ratioText(ratio *float64) string {
	if ratio == nil {
		return unknown
	}
	return strconv.FormatFloat(*ratio, 'f', 3, 64)
}

// oneLine keeps text from elsewhere from breaking the table or the terminal.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}
