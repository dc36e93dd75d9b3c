package study

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"courier/regress/anova"
)

// WriteCSV writes a line per term and response, with all digits.
func (s *RunsAnalysis) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	lines := [][]string{{"response", "term", "degrees", "squares", "f", "p", "partial_omega2",
		"effect_low", "effect_high", "partial_eta2", "omega2"}}
	for i := range s.Analyses {
		a := &s.Analyses[i]
		for _, t := range a.Terms {
			line := []string{a.Response, t.Name, strconv.Itoa(t.Degrees)}
			for _, x := range []float64{t.Squares, t.F, t.P, t.PartialOmega2, t.EffectLow,
				t.EffectHigh, t.PartialEta2, t.Omega2} {
				line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
			}
			lines = append(lines, line)
		}
		lines = append(lines, []string{a.Response, "residual", strconv.Itoa(a.ResidualDegrees),
			strconv.FormatFloat(a.ResidualSquares, 'g', -1, 64), "", "", "", "", "", "", ""})
	}
	return w.WriteAll(lines)
}

// WriteText writes the study as tables.
func (s *RunsAnalysis) WriteText(out io.Writer) {
	fmt.Fprintln(out, s.Summary())
	for i := range s.Analyses {
		s.Analyses[i].write(out)
	}
	if s.Regressors != nil {
		s.Regressors.write(out)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "\nNote: %s.\n", note)
	}
}

// Summary returns how many runs were analysed.
func (s *RunsAnalysis) Summary() string {
	text := fmt.Sprintf("%d runs", s.Runs)
	if s.Source != "" {
		text += " of " + s.Source
	}
	if s.Unfinished > 0 {
		text += fmt.Sprintf("; %d that did not finish are left out", s.Unfinished)
	}
	return text
}

func (a *Analysis) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s: R2 %.4f, adjusted R2 %.4f, %d runs", a.Response, a.R2, a.AdjustedR2,
		a.Runs)
	if a.Incomplete > 0 {
		fmt.Fprintf(w, " (%d without a value are left out)", a.Incomplete)
	}
	fmt.Fprint(w, "\n\nterm\tdf\tsum of squares\tF\tp\tpartial omega2\t95 % interval\tpartial eta2\n")
	for _, t := range a.Terms {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%.3f\t%.3f to %.3f\t%.3f\n", t.Name,
			t.Degrees, Digits(t.Squares), Statistic(t.F), Probability(t.P), t.PartialOmega2,
			t.EffectLow, t.EffectHigh, t.PartialEta2)
	}
	fmt.Fprintf(w, "residual\t%d\t%s\n\n", a.ResidualDegrees,
		Digits(a.ResidualSquares))
	for _, line := range a.Influences() {
		fmt.Fprintln(w, line)
	}
	a.writeMeans(w)
	fmt.Fprintln(w)
	for _, line := range a.Checks() {
		fmt.Fprintf(w, "%s.\n", line)
	}
	for _, note := range a.Notes {
		fmt.Fprintf(w, "Note: %s.\n", note)
	}
}

// writeMeans writes the means of the terms with a clear influence.
func (a *Analysis) writeMeans(w io.Writer) {
	for _, t := range a.clearTerms() {
		k := slices.IndexFunc(a.Means, func(m anova.Means) bool { return m.Term == t.Name })
		if k < 0 {
			continue
		}
		m := &a.Means[k]
		fmt.Fprintf(w, "\n%s\tmean\t95 %% interval\truns\n", strings.Join(m.Variables, "\t"))
		for _, p := range m.Values {
			fmt.Fprintf(w, "%s\t%s\t%s to %s\t%d\n", strings.Join(p.Levels, "\t"), Digits(p.Mean),
				Digits(p.Low), Digits(p.High), p.Runs)
		}
	}
}

// Checks returns the results of the checks of the assumptions as sentences without full stop.
func (a *Analysis) Checks() []string {
	var lines []string
	if n := a.Normality; n != nil {
		verdict := "no sign of another distribution"
		if n.P < anova.Unusual {
			verdict = "the residuals are not normally distributed"
		}
		lines = append(lines, fmt.Sprintf("Normality (Shapiro-Wilk): W %.4f, p %s: %s", n.W,
			Probability(n.P), verdict))
	} else {
		lines = append(lines, "Normality: not tested, which takes 3 to 5000 different residuals")
	}
	var parts []string
	differ := false
	for _, t := range a.Variances {
		parts = append(parts, fmt.Sprintf("%s F %s (p %s)", t.Factor, Statistic(t.Statistic),
			Probability(t.P)))
		differ = differ || t.P < anova.Unusual
	}
	if len(parts) == 0 {
		parts = []string{"there is no factor to test"}
	}
	lines = append(lines, "Equal variances (Brown-Forsythe): "+strings.Join(parts, ", "))
	if differ {
		line := "The variances differ, so p values near the limit are doubtful"
		if a.Response == a.Column {
			line += ": check whether they are equal for the logarithm (--logarithm)"
		}
		lines = append(lines, line)
	}
	return lines
}

// Digits formats a number with four significant digits.
func Digits(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// Statistic formats a test statistic with four significant digits; a rounding error is 0.
func Statistic(x float64) string {
	if x < 1e-9 {
		return "0"
	}
	return Digits(x)
}

// Probability formats a p value.
func Probability(p float64) string {
	if p >= 0.0001 {
		return strconv.FormatFloat(p, 'f', 4, 64)
	}
	return strconv.FormatFloat(p, 'e', 1, 64)
}
