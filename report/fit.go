package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"courier/regress"
	"courier/regress/table"
)

// Fit is a regressor that was selected and fitted on a table of examples.
type Fit struct {
	*table.CleanExamples
	Regressor *regress.Regressor
	Predictor *regress.Predictor
	Report    regress.SelectReport
	Grid      []regress.GridPoint // searched forest options; may be nil
}

// SearchGrid searches the grid of the paper, with bootstrap samples, and returns its best forest.
func (f *Fit) SearchGrid(ctx context.Context, o regress.ForestOptions) (regress.Method, error) {
	o.Bootstrap = true
	points, best, err := regress.SearchForest(ctx, f.Data, regress.PaperGrid(len(f.Data.Features)), o)
	if err != nil {
		return regress.Method{}, err
	}
	f.Grid = points
	b := points[best].Options
	name := fmt.Sprintf("forest of the grid: %d trees, depth %d, %s", b.Trees, b.MaxDepth, b.Criterion)
	return regress.ForestMethod(name, b), nil
}

// WriteText writes the report as text.
func (f *Fit) WriteText(out io.Writer) error {
	r := &f.Report
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s from %d examples of %d configurations, %s\n", r.Target, inUnit(r.Unit),
		r.Examples, r.Settings, transformText(r.Transform))
	for _, feature := range f.Regressor.Manifest.Features {
		fmt.Fprintf(&b, "  %s\n", featureText(feature))
	}
	if f.RowsWithoutTarget > 0 {
		fmt.Fprintf(&b, "  %d rows without %s were skipped\n", f.RowsWithoutTarget, r.Target)
	}
	for _, d := range f.Dropped {
		fmt.Fprintf(&b, "  %d examples were dropped: %s\n", d.Count, d.Reason)
	}
	fmt.Fprintf(&b,
		"\nOn held-out configurations (%d folds, %s),\nby the pinball loss of the bound at"+
			" %g:\n\n", r.Folds, shufflesText(r.Shuffles), r.Confidence)
	if err := writeMethods(&b, r); err != nil {
		return err
	}
	fmt.Fprintf(&b,
		"\nselected: %s. Its figures are slightly optimistic, because it was selected by"+
			" them.\n", r.Winner)
	if why := whyNotFirst(r); why != "" && !f.Regressor.Manifest.Constant {
		fmt.Fprintln(&b, why)
	}
	if f.Regressor.Manifest.Constant {
		fmt.Fprintf(&b,
			"All examples had the same %s: there was nothing to learn; the regressor predicts"+
				" this value.\n", r.Target)
	} else if beware := warning(r); beware != "" {
		fmt.Fprintln(&b, beware)
	}
	writeGroups(&b, r)
	writeLevels(&b, r)
	writeGrid(&b, f)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeMethods writes a line per method and baseline, and then why some have no figures.
func writeMethods(b *strings.Builder, r *regress.SelectReport) error {
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
			known("%.3f", j.Coverage.Value), known("%.3f", j.Width.Value))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString(strings.Join(reasons, ""))
	return nil
}

// known formats a figure; - for NaN.
func known(format string, x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// shufflesText describes how figures of several shuffles are summarized.
func shufflesText(shuffles int) string {
	if shuffles == 1 {
		return "one shuffle"
	}
	return fmt.Sprintf("median and 95 %% range of %d shuffles", shuffles)
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

// reasonOf returns why there are no figures, without the number of the fold.
func reasonOf(j regress.Judged) string {
	fold, reason, found := strings.Cut(j.Error, ": ")
	if found && strings.HasPrefix(fold, "fold ") {
		return reason
	}
	return j.Error
}

// whyNotFirst explains the choice of a method whose loss is not the smallest.
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

// warning describes why the winner is of little use; empty if it is useful.
func warning(r *regress.SelectReport) string {
	for _, j := range r.Candidates {
		if j.Name != r.Winner {
			continue
		}
		for _, b := range r.Baselines {
			if b.Error == "" && b.Pinball.Value <= j.Pinball.Value {
				return fmt.Sprintf("Warning: the simple rule \"%s\" is at least as good. These"+
					" features explain little of the target.", b.Name)
			}
		}
		if j.R2.Value <= 0 {
			return "Warning: the mean of all examples is at least as good. These features explain" +
				" little of the target."
		}
	}
	return ""
}

// shownLevels is the maximum number of levels in a report. It shows the lowest coverages.
const shownLevels = 8

func writeGroups(b *strings.Builder, r *regress.SelectReport) {
	groups := slices.Clone(r.Groups)
	if len(groups) > shownLevels {
		slices.SortStableFunc(groups, func(a, b regress.GroupCoverage) int {
			return cmp.Compare(a.Coverage.Ratio.Value, b.Coverage.Ratio.Value)
		})
		fmt.Fprintf(b, "  the levels with the lowest coverage, of %d:\n", len(groups))
		groups = groups[:shownLevels]
	}
	for _, g := range groups {
		c := g.Coverage
		fmt.Fprintf(b, "  %s %s: %.3f of the examples under the bound (%.3f to %.3f)%s\n",
			g.Feature, g.Level, c.Ratio.Value, c.Ratio.Low, c.Ratio.High, tooRarely(c))
	}
}

// tooRarely returns a warning if the coverage of a bound is significantly too low.
func tooRarely(c regress.Coverage) string {
	if c.Ratio.High < c.Level {
		return ": too low; levels with 50 or more examples get their own bounds"
	}
	return ""
}

// writeLevels writes the mean absolute error of each method at held-out levels, to show how well
// the method interpolates and extrapolates.
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
		"\nOn held-out levels (mean absolute error, and coverage of the bound; > is"+
			" extrapolation):\n\n")
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
	_ = t.Flush() // A strings.Builder returns no error.
}

// covered formats the coverage of a bound; empty without a bound.
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
	fmt.Fprintf(b, "\nThe best of %d grid points, on untransformed %s:\n", len(f.Grid),
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

// sameForest reports whether two grid points are the same forest: different rules may give the same
// number of features, such as the square root and the logarithm of 4.
func sameForest(a, b regress.GridPoint) bool {
	return a.Options.Trees == b.Options.Trees && a.Options.MaxDepth == b.Options.MaxDepth &&
		a.Options.Criterion == b.Options.Criterion &&
		a.Options.FeaturesPerSplit == b.Options.FeaturesPerSplit
}

// Manifest writes a description of a regressor.
func Manifest(out io.Writer, m *regress.Manifest) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s by a %s, %s\n", m.Target, inUnit(m.Unit), m.Family,
		transformText(m.Transform))
	fmt.Fprintf(&b, "fitted on %d examples of %d configurations (digest %.12s)", m.Examples.Count,
		m.Examples.Settings, m.Examples.Digest)
	if m.Version != "" {
		fmt.Fprintf(&b, " by courier %s", m.Version)
	}
	fmt.Fprintln(&b)
	for _, f := range m.Features {
		fmt.Fprintf(&b, "  %s\n", featureText(f))
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
		fmt.Fprintf(&b, "on held-out configurations: MSE %s, R2 %s, MAPE %s\n", interval(s.MSE, 1),
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
	_, err := fmt.Fprintf(out, "\npinball loss of the first minus that of the second: %s; %s\n"+
		"(%d examples of %d configurations; a regressor that was fitted on them has optimistic"+
		" figures)\n",
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

func featureText(f regress.FeatureRange) string {
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

func transformText(t regress.Transform) string {
	if t == regress.Log {
		return "fitted on a logarithmic scale"
	}
	return "fitted untransformed"
}
