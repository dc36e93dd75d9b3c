package replay

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText writes the result as tables with a legend.
func (r *Reevaluation) WriteText(out io.Writer) error {
	fmt.Fprintf(out, "%d events", r.Events)
	if r.FirstOfJobs > 1 {
		fmt.Fprintf(out, "; the log begins with event %d of the jobs, earlier events were dropped",
			r.FirstOfJobs)
	}
	fmt.Fprintln(out)
	if err := r.Verification.writeText(out); err != nil || len(r.Rules) == 0 {
		return err
	}
	return r.writeRules(out)
}

func (v *Verification) writeText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nreplayed\tequal\tdifferent\tunrepeatable\t")
	for _, line := range []struct {
		name string
		VerifyCounts
	}{
		{"answers", v.Answers},
		{"predictions", v.Predictions},
		{"warnings", v.Warnings},
		{"all", v.Total()},
	} {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t\n", line.name, line.Equal, line.Different,
			line.Unrepeatable)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, u := range v.Unrepeatable {
		fmt.Fprintf(out, "unrepeatable: %d because %s\n", u.Events, u.Reason)
	}
	for _, d := range v.Differences {
		fmt.Fprintf(out, "first difference: %s, event %d: %s was %s, is %s\n",
			d.EventID, d.Sequence, d.Field, d.Recorded, d.Replayed)
	}
	return nil
}

func (r *Reevaluation) writeRules(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"\nrule\tpromised\trefused\texplored\tmeasured\tkept\tinterval\taccuracy\tCPU s\t"+
			"predicted\tkept\tCPU s\taccuracy\tregret\t")
	for _, s := range r.Rules {
		interval, name := "-", s.Rule
		if s.MeasuredKeptLow != nil {
			interval = fmt.Sprintf("%.3f-%.3f", *s.MeasuredKeptLow, *s.MeasuredKeptHigh)
		}
		if s.Variant != "" {
			name += " *"
		}
		cells := []string{
			name,
			fmt.Sprint(s.Promised),
			fmt.Sprint(s.Refused),
			fmt.Sprint(s.Explored),
			fmt.Sprint(s.Measured),
			optional(s.MeasuredKeptRatio, "%.3f"),
			interval,
			optional(s.MeasuredAccuracy, "%.4f"),
			fmt.Sprintf("%.1f", s.MeasuredCPUSeconds),
			fmt.Sprint(s.Predicted),
			fmt.Sprint(s.PredictedKept),
			fmt.Sprintf("%.1f", s.PredictedCPUSeconds),
			optional(s.AllPredictedAccuracy, "%.4f"),
			optional(s.AllPredictedRegret, "%.4f"),
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.Rules {
		if s.Variant != "" {
			fmt.Fprintf(out, "*          with %s\n", s.Variant)
			break
		}
	}
	_, err := fmt.Fprintf(out, legend, r.Referee)
	return err
}

// legend explains the columns.
const legend = `recorded   what the advisor of the log decided; the other rules answer from the same earlier events
measured   promises whose job ended and ran as the rule chose: kept (with its 95 %% interval),
           accuracy and CPU time are measured
predicted  the other promises: kept and CPU time are predicted, because each job ran in one way only
accuracy   (last columns) of all promises, predicted; regret is the difference to the best
           alternative that would have kept the SLO
predictor: %s; corrected by how much longer than predicted the job itself took
`

// optional formats a number, or - for nil.
func optional(v *float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}
