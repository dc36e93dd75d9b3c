package runner

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"courier/schemas"
)

// adviceText returns advice as text for a user: the decision, its reason, and a table of all
// alternatives. An unknown figure is a dash.
func adviceText(a *schemas.Advice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "courier: job %s: %s", a.JobID, a.Decision)
	if c := a.Chosen; c != nil {
		fmt.Fprintf(&b, ": %s, %s, %s", schemas.FormatBatchSize(c.BatchSize), schemas.FormatShape(c.Workers, c.CPUs),
			schemas.FormatCount(uint64(c.Epochs), "epoch"))
	}
	b.WriteByte('\n')
	if a.Message != "" {
		fmt.Fprintf(&b, "courier: %s\n", schemas.OneLine(a.Message))
	}

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "   batch size\tCPUs\ttime\tupper bound\taccuracy\tSLO probability\t")
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		mark := " "
		if a.IsChosen(alt) {
			mark = "*"
		}
		fmt.Fprintf(table, " %s %s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			mark, schemas.OptionalBatchSize(alt.BatchSize), schemas.ShortShape(alt.Workers, alt.CPUs),
			schemas.OptionalSeconds(alt.PredictedSeconds), schemas.OptionalSeconds(alt.UpperBoundSeconds),
			schemas.OptionalNumber(alt.PredictedAccuracy, "%.3f"), schemas.OptionalProbability(alt.Probability),
			schemas.OneLine(alt.Reason))
	}
	_ = table.Flush() // a strings.Builder returns no error

	for _, c := range a.OtherChoices() {
		fmt.Fprintf(&b, "courier: or %s\n", c.Text())
	}
	return b.String()
}
