package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"courier/regress"
)

// WriteHTML writes the report as one self-contained page.
func (f *Fit) WriteHTML(out io.Writer) error {
	plots := []template.HTML{predictedPlot(f)}
	for i := range f.Data.Features {
		plots = append(plots, residualPlot(f, i))
	}
	importances, err := importancePlot(f)
	if err != nil {
		return err
	}
	plots = append(plots, importances, coveragePlot(f))
	for i := range f.Data.Features {
		p, err := dependencePlot(f, i)
		if err != nil {
			return err
		}
		plots = append(plots, p)
	}
	return reportPage.Execute(out, struct {
		*regress.SelectReport
		Dropped  []regress.Dropped
		Empty    int
		Plots    []template.HTML
		Without  levelTable
		Features []regress.FeatureRange
		Version  string
		Constant bool
		Why      string
		Beware   string
	}{&f.Report, f.Dropped, f.RowsWithoutTarget, plots, levelsOf(f.Report.Levels),
		f.Regressor.Manifest.Features, f.Regressor.Manifest.Version,
		f.Regressor.Manifest.Constant, whyNotFirst(&f.Report), warning(&f.Report)})
}

func (f *Fit) unit() string { return f.Report.Target + inUnit(f.Report.Unit) }

// predictedPlot plots the predictions of held-out examples against their measured values, with a
// line up to the bound.
func predictedPlot(f *Fit) template.HTML {
	log := f.Report.Transform == regress.Log
	p := &chart{
		title: fmt.Sprintf("Held-out configurations: prediction, and line to the bound at %g",
			f.Report.Confidence),
		x:    "measured " + f.unit(),
		y:    "predicted (red: the bound was too low)",
		logX: log,
		logY: log,
	}
	var ys []float64
	for _, h := range f.Report.HeldOut {
		ys = append(ys, h.Truth, h.Predicted)
		if h.Bound != 0 {
			ys = append(ys, h.Bound)
		}
	}
	p.span(ys, ys)
	ends := []float64{p.minX, p.maxX}
	p.line("even", ends, ends)
	for _, h := range f.Report.HeldOut {
		if h.Bound != 0 {
			class := "bound"
			if h.Truth > h.Bound {
				class = "missed"
			}
			p.line(class, []float64{h.Truth, h.Truth}, []float64{h.Predicted, h.Bound})
		}
		p.dot(h.Truth, h.Predicted,
			fmt.Sprintf("measured %.4g, predicted %.4g, bound %.4g", h.Truth, h.Predicted, h.Bound))
	}
	return p.svg()
}

// residualPlot plots the residuals of held-out predictions against a feature.
func residualPlot(f *Fit, feature int) template.HTML {
	name := f.Data.Features[feature]
	p := &chart{
		title: "Residuals by " + name.Name,
		x:     name.Name,
		y:     "measured - predicted",
		names: name.Levels,
	}
	if f.Report.Transform == regress.Log {
		p.y = "measured / predicted - 1"
	}
	var xs, ys []float64
	for _, h := range f.Report.HeldOut {
		y := h.Truth - h.Predicted
		if f.Report.Transform == regress.Log {
			y = h.Truth/h.Predicted - 1
		}
		xs, ys = append(xs, h.Row[feature]), append(ys, y)
	}
	p.logX = name.Levels == nil && spansMuch(xs)
	p.at = fewValues(xs, p.logX)
	p.span(xs, append(slices.Clone(ys), 0))
	if p.names != nil {
		p.minX, p.maxX = -0.5, float64(len(p.names))-0.5
	}
	p.line("even", []float64{p.minX, p.maxX}, []float64{0, 0})
	for i := range xs {
		p.dot(xs[i], ys[i], fmt.Sprintf("%s %.4g: %.3g", name.Name, xs[i], ys[i]))
	}
	return p.svg()
}

func spansMuch(xs []float64) bool {
	return len(xs) > 0 && slices.Min(xs) > 0 && slices.Max(xs) >= 8*slices.Min(xs)
}

func importancePlot(f *Fit) (template.HTML, error) {
	shares, err := regress.Importance(f.Predictor, f.Data, 1)
	if err != nil {
		return "", err
	}
	p := &chart{
		title: "Permutation importance of the features",
		x:     "feature",
		y:     "share",
		minX:  -0.5,
		maxX:  float64(len(shares)) - 0.5,
		maxY:  1.05 * max(0.01, slices.Max(shares)),
	}
	for i, s := range shares {
		p.names = append(p.names, f.Data.Features[i].Name)
		p.bar(float64(i), s, fmt.Sprintf("%s: %.3f", f.Data.Features[i].Name, s))
	}
	return p.svg(), nil
}

// coveragePlot plots the coverage of bounds with 95 % intervals, and their confidence.
func coveragePlot(f *Fit) template.HTML {
	type held struct {
		name  string
		asked float64
		ratio regress.Estimate
	}
	var all []held
	for _, c := range f.Regressor.Manifest.Coverage {
		all = append(all, held{fmt.Sprintf("at %g", c.Level), c.Level, c.Ratio})
	}
	for _, g := range f.Report.Groups {
		all = append(all, held{g.Level, f.Report.Confidence, g.Coverage.Ratio})
	}
	p := &chart{
		title: "Coverage of the bounds; dashed: confidence",
		x:     "bound, and categories at the confidence",
		y:     "share",
		minX:  -0.5,
		maxX:  float64(max(1, len(all))) - 0.5,
		minY:  0,
		maxY:  1.02,
	}
	for i, h := range all {
		at := float64(i)
		p.names = append(p.names, h.name)
		p.line("even", []float64{at - 0.3, at + 0.3}, []float64{h.asked, h.asked})
		if math.IsNaN(h.ratio.Value) {
			continue
		}
		p.line("bound", []float64{at, at}, []float64{h.ratio.Low, h.ratio.High})
		p.dot(at, h.ratio.Value,
			fmt.Sprintf("%s: %.3f (%.3f to %.3f), confidence %g", h.name, h.ratio.Value, h.ratio.Low,
				h.ratio.High, h.asked))
	}
	return p.svg()
}

const dependenceSteps = 40

// dependencePlot plots the mean prediction against a feature.
func dependencePlot(f *Fit, feature int) (template.HTML, error) {
	d := f.Data.Features[feature]
	column := f.Data.Columns[feature]
	low, high := slices.Min(column), slices.Max(column)
	p := &chart{
		title: "Partial dependence on " + d.Name,
		x:     d.Name,
		y:     f.unit(),
		names: d.Levels,
		logX:  d.Levels == nil && spansMuch(column),
		logY:  f.Report.Transform == regress.Log,
	}
	var at []float64
	for i := range d.Levels {
		at = append(at, float64(i))
	}
	for i := 0; d.Levels == nil && i <= dependenceSteps; i++ {
		x := low + (high-low)*float64(i)/dependenceSteps
		if p.logX {
			x = low * math.Pow(high/low, float64(i)/dependenceSteps)
		}
		at = append(at, min(max(x, low), high))
	}
	curve, err := regress.PartialDependence(f.Predictor, f.Data, feature, at)
	if err != nil {
		return "", err
	}
	p.span(at, curve)
	if d.Levels == nil {
		p.at = fewValues(column, p.logX)
		p.line("curve", at, curve)
		return p.svg(), nil
	}
	p.minX, p.maxX = -0.5, float64(len(d.Levels))-0.5
	for i, y := range curve {
		p.line("level", []float64{at[i] - 0.3, at[i] + 0.3}, []float64{y, y})
		p.dot(at[i], y, fmt.Sprintf("%s: %.4g", d.Levels[i], y))
	}
	return p.svg(), nil
}
