package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"courier/regress/anova"
)

// figure is a chart with what it shows in words, and a legend if it has several series.
type figure struct {
	*studyChart
	Caption string
	Factor  string // of the legend
	Legend  []legendEntry
}

type legendEntry struct {
	Class, Path, Name string
}

func legend(names []string) []legendEntry {
	var all []legendEntry
	for i, name := range names {
		all = append(all, legendEntry{seriesClass(i), markPath(i, 8, 6, 4), name})
	}
	return all
}

// Bounds of the drawn points. They bound the size of the page; captions say what is left out.
const (
	maxRunDots      = 2000 // of a chart of residuals
	maxPanelDots    = 400  // of a chart of a factor
	maxInteractions = 8    // with charts
)

// sample returns up to n indices at regular distances.
func sample(total, n int) []int {
	var all []int
	for i := range min(total, n) {
		all = append(all, i*total/min(total, n))
	}
	return all
}

// partOf returns a sentence about points that are not drawn; empty if all are.
func partOf(drawn, total int) string {
	if drawn >= total {
		return ""
	}
	return fmt.Sprintf(" %d of %d runs are drawn.", drawn, total)
}

func meansFigures(a *Analysis) []figure {
	var all []figure
	for i := range a.Means {
		if m := &a.Means[i]; len(m.Variables) == 1 {
			all = append(all, a.meansFigure(m))
		}
	}
	return all
}

// firstAxis returns the axis of the first variable of means.
func firstAxis(m *anova.Means) chartAxis {
	var names []string
	var xs []float64
	for _, p := range m.Values {
		xs = append(xs, p.X)
		if !m.Covariate {
			for len(names) <= int(p.X) {
				names = append(names, "")
			}
			names[int(p.X)] = p.Levels[0]
		}
	}
	if m.Covariate {
		return numericAxis(xs)
	}
	return namedAxis(names)
}

func heights(m *anova.Means) (all []float64) {
	for _, p := range m.Values {
		all = append(all, p.Low, p.High)
	}
	return all
}

// meansFigure shows the means of a term of one variable, with a point per run, or of two with a line per
// level of the second.
func (a *Analysis) meansFigure(m *anova.Means) figure {
	title, names := fmt.Sprintf("Mean of %s by %s", a.Response, m.Variables[0]), secondLevels(m)
	ys := heights(m)
	if len(m.Variables) == 2 {
		title += ", a line per " + m.Variables[1]
	} else {
		ys = append(ys, a.design.Y...)
	}
	c := newChart(title, m.Variables[0], a.Response, firstAxis(m), numericAxis(ys))
	caption := extremes(m)
	if len(m.Variables) == 1 {
		caption += c.runs(a.design, m.Variables[0])
	}
	for i, name := range names {
		shift := 4 * (float64(i) - float64(len(names)-1)/2)
		if m.Covariate || len(names) > 6 {
			shift = 0
		}
		points := slices.DeleteFunc(slices.Clone(m.Values), func(p anova.MeanPoint) bool {
			return secondLevel(p) != name
		})
		c.means(i, m, points, shift)
	}
	f := figure{studyChart: c, Caption: caption}
	if len(names) > 1 {
		f.Factor, f.Legend = m.Variables[1], legend(names)
	}
	return f
}

// runs adds a point per run, and returns a sentence about those that are not drawn. The points of a
// level are moved apart, so that points with similar values are visible.
func (c *studyChart) runs(d *anova.TableDesign, variable string) string {
	k := slices.IndexFunc(d.Variables, func(v anova.Variable) bool { return v.Name == variable })
	drawn := sample(len(d.Y), maxPanelDots)
	for n, i := range drawn {
		shift := float64(3 * (n*3%7 - 3))
		c.dot("s1", d.Variables[k].Values[i], d.Y[i], shift, Digits(d.Y[i]))
	}
	return partOf(len(drawn), len(d.Y))
}

// place names the levels of a mean, such as cpus 4, jobs 2.
func place(m *anova.Means, p anova.MeanPoint) string {
	var names []string
	for i, level := range p.Levels {
		names = append(names, m.Variables[i]+" "+level)
	}
	return strings.Join(names, ", ")
}

func extremes(m *anova.Means) string {
	byMean := func(a, b anova.MeanPoint) int { return cmp.Compare(a.Mean, b.Mean) }
	low, high := slices.MinFunc(m.Values, byMean), slices.MaxFunc(m.Values, byMean)
	return fmt.Sprintf("Lowest at %s: %s (95 %% interval %s to %s). Highest at %s: %s (%s to %s).",
		place(m, low), Digits(low.Mean), Digits(low.Low), Digits(low.High), place(m, high),
		Digits(high.Mean), Digits(high.Low), Digits(high.High))
}

// interactionFigures shows the interactions of two factors that have a clear influence, the largest
// first, and returns the clear interactions that it does not show.
func interactionFigures(a *Analysis) (all []figure, absent []string) {
	for _, t := range a.clearTerms() {
		if !strings.Contains(t.Name, ":") {
			continue
		}
		k := slices.IndexFunc(a.Means, func(m anova.Means) bool { return m.Term == t.Name })
		if k < 0 || len(all) == maxInteractions {
			absent = append(absent, t.Name)
		} else {
			all = append(all, a.meansFigure(&a.Means[k]))
		}
	}
	return all, absent
}

// secondLevel returns the level of the second variable of a mean; empty without one.
func secondLevel(p anova.MeanPoint) string { return strings.Join(p.Levels[1:], "") }

func secondLevels(m *anova.Means) (names []string) {
	for _, p := range m.Values {
		if !slices.Contains(names, secondLevel(p)) {
			names = append(names, secondLevel(p))
		}
	}
	return names
}

// means adds a series of means. The line has gaps where a level has no mean.
func (c *studyChart) means(series int, m *anova.Means, points []anova.MeanPoint, shift float64) {
	var xs, ys []float64
	for i, p := range points {
		if i > 0 && !m.Covariate && p.X != points[i-1].X+1 {
			c.line(seriesClass(series), xs, ys, shift)
			xs, ys = nil, nil
		}
		xs, ys = append(xs, p.X), append(ys, p.Mean)
	}
	c.line(seriesClass(series), xs, ys, shift)
	for _, p := range points {
		c.interval(seriesClass(series)+" thin", p.X, p.Low, p.High, shift)
		c.mark(series, p.X, p.Mean, shift, fmt.Sprintf("%s: %s (%s to %s)", place(m, p), Digits(p.Mean),
			Digits(p.Low), Digits(p.High)))
	}
}

// residualFigures shows the residuals against the fitted values, and their normal quantile plot.
func residualFigures(a *Analysis) []figure {
	n := len(a.Residuals)
	fitted := newChart("Residuals of "+a.Response+" against fitted values", "fitted value",
		"residual", numericAxis(a.Fitted), numericAxis(append(slices.Clone(a.Residuals), 0)))
	fitted.line("even", []float64{fitted.x.low, fitted.x.high}, []float64{0, 0}, 0)
	drawn := sample(n, maxRunDots)
	for _, i := range drawn {
		fitted.dot("s0", a.Fitted[i], a.Residuals[i], 0, fmt.Sprintf("fitted %s, residual %s",
			Digits(a.Fitted[i]), Digits(a.Residuals[i])))
	}
	within := 0
	deviation := math.Sqrt(a.ResidualSquares / float64(a.ResidualDegrees))
	for _, r := range a.Residuals {
		if math.Abs(r) <= 2*deviation {
			within++
		}
	}
	caption := fmt.Sprintf("A cloud of equal height is expected. %d of %d residuals are within two"+
		" residual standard deviations (2 × %s).%s", within, n, Digits(deviation),
		partOf(len(drawn), n))
	return []figure{{studyChart: fitted, Caption: caption}, quantileFigure(a)}
}

func quantileFigure(a *Analysis) figure {
	sorted := slices.Sorted(slices.Values(a.Residuals))
	n := float64(len(sorted))
	deviation := math.Sqrt(a.ResidualSquares / (n - 1))
	var xs, ys []float64
	for i, r := range sorted {
		// Expected quantiles by Blom (1958).
		p := (float64(i+1) - 0.375) / (n + 0.25)
		xs, ys = append(xs, math.Sqrt2*math.Erfinv(2*p-1)), append(ys, r/deviation)
	}
	both := numericAxis(slices.Concat(xs, ys))
	c := newChart("Normal quantile plot of the residuals of "+a.Response,
		"quantile of the normal distribution", "residual / standard deviation", both, both)
	c.line("even", []float64{both.low, both.high}, []float64{both.low, both.high},
		0)
	drawn := sample(len(sorted), maxRunDots)
	for _, i := range drawn {
		c.dot("s0", xs[i], ys[i], 0, "residual "+Digits(sorted[i]))
	}
	caption := "Points on the dashed line are normally distributed. "
	if a.Normality != nil {
		caption += fmt.Sprintf("Shapiro-Wilk: W %.4f, p %s.", a.Normality.W,
			Probability(a.Normality.P))
	} else {
		caption += "Shapiro-Wilk does not apply to this number of residuals."
	}
	return figure{studyChart: c, Caption: caption + partOf(len(drawn), len(sorted))}
}
