package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"courier/regress"
	"courier/regress/table"
)

// Fit is a regressor that was chosen and fitted from a table of examples.
type Fit struct {
	*table.Examples
	Regressor *regress.Regressor
	Predictor *regress.Predictor
	Report    regress.SelectReport
	Grid      []regress.GridPoint // of the forest settings that were searched; may be nil
}

// WriteText writes the report for people.
func (f *Fit) WriteText(out io.Writer) error {
	r := &f.Report
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s from %d examples of %d settings, %s\n", r.Target, inUnit(r.Unit),
		r.Examples, r.Settings, transformWords(r.Transform))
	for _, feature := range f.Regressor.Manifest.Features {
		fmt.Fprintf(&b, "  %s\n", featureWords(feature))
	}
	if f.RowsWithoutTarget > 0 {
		fmt.Fprintf(&b, "  %d rows without %s were left out\n", f.RowsWithoutTarget, r.Target)
	}
	for _, d := range f.Dropped {
		fmt.Fprintf(&b, "  %d examples were dropped: %s\n", d.Count, d.Reason)
	}
	fmt.Fprintf(&b,
		"\nOn settings that were not learnt from (%d folds of settings, %s),\nby the pinball"+
			" loss of the bound at %g:\n\n", r.Folds, shuffleWords(r.Shuffles), r.Confidence)
	if err := writeJudged(&b, r); err != nil {
		return err
	}
	fmt.Fprintf(&b,
		"\nchosen: %s. The best of several looks a little better than it is: choosing is"+
			" learning, too.\n", r.Winner)
	if why := whyNotFirst(r); why != "" && !f.Regressor.Manifest.Constant {
		fmt.Fprintln(&b, why)
	}
	if f.Regressor.Manifest.Constant {
		fmt.Fprintf(&b,
			"All examples had the same %s: there was nothing to learn, and the regressor says"+
				" that.\n", r.Target)
	} else if beware := warning(r); beware != "" {
		fmt.Fprintln(&b, beware)
	}
	writeGroups(&b, r)
	writeLevels(&b, r)
	writeGrid(&b, f)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeJudged writes a line per method and baseline, and below them why some
// have no figures.
func writeJudged(b *strings.Builder, r *regress.SelectReport) error {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tpinball\tMSE\t\tR2\tMAPE\t\tunder bound\tbound/prediction\t\n")
	var reasons []string
	for _, j := range slices.Concat(r.Candidates, r.Baselines) {
		if j.Error != "" {
			fmt.Fprintf(t, "%s\t-\t-\t\t-\t-\t\t-\t-\t\n", j.Name)
			reasons = append(reasons, fmt.Sprintf("  no %s: %s\n", j.Name, reasonOf(j)))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", j.Name,
			threeDigits(j.Pinball.Value), threeDigits(j.MSE.Value), mseRange(j.MSE),
			known("%.4f", j.R2.Value), known("%.2f %%", 100*j.MAPE.Value), mapeRange(j.MAPE),
			known("%.3f",
				j.Coverage.Value), known("%.3f", j.Width.Value))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString(strings.Join(reasons, ""))
	return nil
}

// known writes a figure, and a hyphen for what is not known.
func known(format string, x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// shuffleWords says what figures are over shuffles.
func shuffleWords(shuffles int) string {
	if shuffles == 1 {
		return "dealt once"
	}
	return fmt.Sprintf("median of %d shuffles and range of 95 %% of them", shuffles)
}

func mseRange(e regress.Estimate) string {
	if math.IsNaN(e.Low) || math.IsNaN(e.High) {
		return ""
	}
	return fmt.Sprintf("(%s-%s)", threeDigits(e.Low), threeDigits(e.High))
}

func mapeRange(e regress.Estimate) string {
	if math.IsNaN(e.Low) || math.IsNaN(e.High) {
		return ""
	}
	return fmt.Sprintf("(%.1f-%.1f)", 100*e.Low, 100*e.High)
}

// reasonOf is why there are no figures, without the number of the fold in which
// that was found.
func reasonOf(j regress.Judged) string {
	fold, reason, found := strings.Cut(j.Error, ": ")
	if found && strings.HasPrefix(fold, "fold ") {
		return reason
	}
	return j.Error
}

// whyNotFirst says why a method that has not the smallest loss is chosen.
func whyNotFirst(r *regress.SelectReport) string {
	first := r.Candidates[0]
	for _, j := range r.Candidates[1:] {
		if j.Name == r.Winner {
			return fmt.Sprintf("The loss of %s is %.1f %% lower, but %s is smoother between the"+
				" measured levels.",
				first.Name, 100*(1-first.Pinball.Value/j.Pinball.Value), j.Name)
		}
	}
	return ""
}

// warning says that the winner is of little use, "" if it is of some.
func warning(r *regress.SelectReport) string {
	for _, j := range r.Candidates {
		if j.Name != r.Winner {
			continue
		}
		for _, b := range r.Baselines {
			if b.Error == "" && b.Pinball.Value <= j.Pinball.Value {
				return fmt.Sprintf("Beware: the simple rule \"%s\" does no worse. From these"+
					" features the examples teach little.",
					b.Name)
			}
		}
		if j.R2.Value <= 0 {
			return "Beware: the mean of all examples predicts as well. From these features the" +
				" examples teach little."
		}
	}
	return ""
}

// shownLevels is of how many levels a report tells; of more, the lowest.
const shownLevels = 8

func writeGroups(b *strings.Builder, r *regress.SelectReport) {
	groups := slices.Clone(r.Groups)
	if len(groups) > shownLevels {
		slices.SortStableFunc(groups, func(a, b regress.GroupCoverage) int {
			return cmp.Compare(a.Coverage.Ratio.Value, b.Coverage.Ratio.Value)
		})
		fmt.Fprintf(b, "  of %d levels those least under the bound:\n", len(groups))
		groups = groups[:shownLevels]
	}
	for _, g := range groups {
		c := g.Coverage
		fmt.Fprintf(b, "  %s %s: %.3f of its examples under the bound (%.3f to %.3f)%s\n",
			g.Feature, g.Level, c.Ratio.Value, c.Ratio.Low, c.Ratio.High, tooRarely(c))
	}
}

// tooRarely says that a bound holds less often than it should, and not by chance.
func tooRarely(c regress.Coverage) string {
	if c.Ratio.High < c.Level {
		return ": too rarely; 50 examples or more of each would get bounds of their own"
	}
	return ""
}

// writeLevels shows what happens between and beyond the measured levels: the
// mean of the absolute errors for each method.
func writeLevels(b *strings.Builder, r *regress.SelectReport) {
	if len(r.Levels) == 0 {
		return
	}
	var methods []string
	for _, l := range r.Levels {
		if !slices.Contains(methods, l.Method) {
			methods = append(methods, l.Method)
		}
	}
	fmt.Fprintf(b,
		"\nWithout all examples of a level (mean absolute error there, and the share under the"+
			" bound; > is beyond the others):\n\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\t%s\t\n", strings.Join(methods, "\t"))
	for _, l := range r.Levels {
		if l.Method != methods[0] {
			continue
		}
		mark := ">"
		if l.Between {
			mark = " "
		}
		fmt.Fprintf(t, "%s %s %s\t", mark, l.Feature, l.Level)
		for _, m := range methods {
			cell := "-"
			for _, o := range r.Levels {
				if o.Method == m && o.Feature == l.Feature && o.Level == l.Level && o.MAPE >= 0 {
					cell = fmt.Sprintf("%.1f %%", 100*o.MAPE) + covered(o)
				}
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into a strings.Builder, which takes all
}

// covered is the share under the bound where there was one.
func covered(c regress.LevelCheck) string {
	if c.Covered < 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f)", c.Covered)
}

const gridShown = 5

func writeGrid(b *strings.Builder, f *Fit) {
	if len(f.Grid) == 0 {
		return
	}
	sorted := slices.Clone(f.Grid)
	slices.SortStableFunc(sorted, func(a, b regress.GridPoint) int {
		return cmp.Compare(a.MSE, b.MSE)
	})
	sorted = slices.CompactFunc(sorted, sameForest)
	fmt.Fprintf(b, "\nOf %d settings of the grid the best, on plain %s:\n", len(f.Grid),
		f.Report.Target)
	for _, p := range sorted[:min(gridShown, len(sorted))] {
		features := "all"
		if p.Options.FeaturesPerSplit > 0 {
			features = fmt.Sprint(p.Options.FeaturesPerSplit)
		}
		fmt.Fprintf(b,
			"  %d trees, depth %d, %s error, %s features per split: MSE %.4g, R2 %.4f, MAPE %.2f"+
				" %%\n",
			p.Options.Trees, p.Options.MaxDepth, p.Options.Criterion, features, p.MSE, p.R2,
			100*p.MAPE)
	}
}

// sameForest tells settings that are spelt differently, as the root and the
// logarithm of four features, which are both 2.
func sameForest(a, b regress.GridPoint) bool {
	return a.Options.Trees == b.Options.Trees && a.Options.MaxDepth == b.Options.MaxDepth &&
		a.Options.Criterion == b.Options.Criterion &&
		a.Options.FeaturesPerSplit == b.Options.FeaturesPerSplit
}

// Manifest writes a description of a regressor.
func Manifest(out io.Writer, m *regress.Manifest) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s by a %s, %s\n", m.Target, inUnit(m.Unit), m.Family,
		transformWords(m.Transform))
	fmt.Fprintf(&b, "fitted on %d examples of %d settings (digest %.12s)", m.Examples.Count,
		m.Examples.Settings, m.Examples.Digest)
	if m.Version != "" {
		fmt.Fprintf(&b, " by courier %s", m.Version)
	}
	fmt.Fprintln(&b)
	for _, f := range m.Features {
		fmt.Fprintf(&b, "  %s\n", featureWords(f))
	}
	features := make([]regress.Feature, len(m.Features))
	for i, f := range m.Features {
		features[i] = f.Feature
	}
	switch {
	case m.Gaussian != nil:
		fmt.Fprintf(&b, "trend of scaled features: %s\ncorrection from %d examples, noise %.3g\n",
			m.Gaussian.Trend.Formula(features), len(m.Gaussian.Weights), m.Gaussian.Noise)
	case m.Law != nil:
		fmt.Fprintf(&b, "law of scaled features: %s\n", m.Law.Formula(features))
	}
	if m.Constant {
		fmt.Fprintf(&b, "all examples had the same %s\n", m.Target)
	}
	if s := m.Scores; s != nil {
		fmt.Fprintf(&b, "on held-out settings: MSE %s, R2 %s, MAPE %s\n", interval(s.MSE, 1),
			interval(s.R2, 1), interval(s.MAPE, 100))
	}
	for _, c := range m.Coverage {
		fmt.Fprintf(&b, "  bound at %g: %s under it, bound / prediction %.3f\n", c.Level,
			interval(c.Ratio, 1), c.Width.Value)
	}
	if m.Calibration.Count == 0 {
		fmt.Fprintln(&b, "  without calibration: no bound and no probability")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Comparison writes a comparison of two regressors as a table.
func Comparison(out io.Writer, c *table.Comparison) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tfamily\tMSE\tR2\tMAPE, %%\tunder bound at %g\tbound/prediction\tpinball\t"+
		"interpolated\textrapolated\t\n", c.Confidence)
	for _, r := range c.Regressors {
		cells := []string{
			r.Name,
			r.Family,
			interval(r.Scores.MSE, 1),
			interval(r.Scores.R2, 1),
			interval(r.Scores.MAPE, 100),
			interval(r.Coverage.Ratio, 1),
			fmt.Sprintf("%.3f", r.Coverage.Width.Value),
			fmt.Sprintf("%.4g", r.Coverage.Pinball.Value),
			fmt.Sprintf("%.0f %%", 100*r.Between),
			fmt.Sprintf("%.0f %%", 100*r.Extrapolated),
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	scores := c.Regressors[0].Scores
	_, err := fmt.Fprintf(out, "\npinball loss of the first less that of the second: %s; %s\n"+
		"(%d examples of %d configurations; a regressor that was fitted on them looks better)\n",
		interval(c.Pinball, 1), c.Verdict, scores.Examples, scores.Settings)
	return err
}

func interval(e regress.Estimate, times float64) string {
	if math.IsNaN(e.Value) {
		return "unknown"
	}
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%.4g", times*e.Value)
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", times*e.Value, times*e.Low, times*e.High)
}

func featureWords(f regress.FeatureRange) string {
	words := fmt.Sprintf("%s: %g to %g", f.Name, f.Min, f.Max)
	if f.Min == f.Max {
		words = fmt.Sprintf("%s: always %g", f.Name, f.Min)
	}
	if f.Levels != nil {
		var seen []string
		for _, level := range f.Seen {
			seen = append(seen, f.Levels[level])
		}
		words = f.Name + ": " + strings.Join(seen[:min(len(seen), shownLevels)], ", ")
		if more := len(seen) - shownLevels; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
	}
	switch f.Monotone {
	case 1:
		words += ", never lowers the target"
	case -1:
		words += ", never raises the target"
	}
	return words
}

func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " in " + unit
}

func transformWords(t regress.Transform) string {
	if t == regress.Log {
		return "fitted as a logarithm"
	}
	return "fitted as it is"
}
