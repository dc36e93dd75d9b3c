package report

import (
	"fmt"
	"io"

	"courier/schemas"
)

// Score writes SLO attainment and calibration as two tables.
func Score(out io.Writer, s *schemas.Score) {
	line := func(kind, name, confidence string, x schemas.Tally) {
		interval := "-"
		if x.KeptLow != nil {
			interval = fmt.Sprintf("%.3f-%.3f", *x.KeptLow, *x.KeptHigh)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t\n",
			kind, name, confidence, x.Jobs, x.Kept, schemas.OptionalNumber(x.KeptRatio, "%.3f"), interval,
			x.Incomplete, x.Cancelled, x.Lost)
	}
	fmt.Fprintln(out, "promises of\tname\tconfidence\tjobs\tmet SLO\tattainment\tinterval\t"+
		"incomplete\tcancelled\tlost\t")
	line("all", "", "", s.Promises.Tally)
	if middle := len(s.Trend) / 2; s.Promises.Jobs > 0 && middle > 0 { // the halves show a change
		line("first half", "", "", sum(s.Trend[:middle]))
		line("second half", "", "", sum(s.Trend[middle:]))
	}
	for _, g := range []struct {
		kind  string
		lines []schemas.ScoreLine
	}{
		{"confidence", s.Confidence},
		{"user", s.Users},
		{"model", s.Models},
		{"decision", s.Decisions},
	} {
		for i := range g.lines {
			l := &g.lines[i]
			name := trainedName(l.Name, l.Dataset)
			if l.Others {
				name = "(others)"
			}
			line(g.kind, name, schemas.OptionalNumber(l.Confidence, "%.4g"), l.Tally)
		}
	}
	fmt.Fprintln(out, "\npredicted probability\tmean\tjobs\tmet SLO\tattainment\tinterval\t")
	for i := range s.Calibration {
		b := &s.Calibration[i]
		if b.Jobs == 0 {
			continue
		}
		fmt.Fprintf(out, "%.2f-%.2f\t%s\t%d\t%d\t%.3f\t%.3f-%.3f\t\n", b.FromProbability,
			b.ToProbability, schemas.OptionalNumber(b.MeanProbability, "%.3f"), b.Jobs, b.Kept, *b.KeptRatio,
			*b.KeptLow, *b.KeptHigh)
	}
	fmt.Fprint(out, scoreLegend)
}

// sum adds the promises of parts of a period. Their intervals cannot be added.
func sum(steps []schemas.ScoreStep) (all schemas.Tally) {
	for i := range steps {
		t := &steps[i].Tally
		all.Jobs += t.Jobs
		all.Kept += t.Kept
		all.Incomplete += t.Incomplete
		all.Cancelled += t.Cancelled
		all.Lost += t.Lost
	}
	if all.Jobs > 0 {
		all.KeptRatio = new(float64(all.Kept) / float64(all.Jobs))
	}
	return all
}

const scoreLegend = `
The table counts submissions with an SLO whose jobs ran as advised and ended
without being cancelled. A promise is an answer with the decision meets_slo; the
lines by decision and by probability also count the other answers. Intervals
have 95 % (Wilson). Cancelled, lost and incomplete jobs that ran as advised are
counted apart; an incomplete one ended in time with fewer epochs than it should.
`
