package main

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"courier/regress"
)

// writeReportHTML writes the report as one page that needs nothing else.
func writeReportHTML(out io.Writer, f *fittedRegressor) error {
	plots := []template.HTML{predictedPlot(f)}
	for i := range f.data.Features {
		plots = append(plots, residualPlot(f, i))
	}
	importances, err := importancePlot(f)
	if err != nil {
		return err
	}
	plots = append(plots, importances, coveragePlot(f))
	for i := range f.data.Features {
		p, err := dependencePlot(f, i)
		if err != nil {
			return err
		}
		plots = append(plots, p)
	}
	return reportPage.Execute(out, struct {
		*regress.Report
		All      []regress.Judged
		Dropped  []regress.Dropped
		Empty    int
		Plots    []template.HTML
		Features []regress.FeatureRange
		Version  string
	}{&f.report, append(slices.Clone(f.report.Candidates), f.report.Baselines...), f.dropped, f.unknown, plots,
		f.regressor.Manifest.Features, f.regressor.Manifest.Version})
}

func (f *fittedRegressor) unit() string { return f.report.Target + inUnit(f.report.Unit) }

// predictedPlot shows held-out examples: measured across, predicted up, and a
// line to the bound.
func predictedPlot(f *fittedRegressor) template.HTML {
	log := f.report.Transform == regress.Log
	p := &plot{title: "Held-out settings: predicted against measured", x: "measured " + f.unit(), y: "predicted, and the bound above it", logX: log, logY: log}
	var xs, ys []float64
	for _, h := range f.report.HeldOut {
		xs, ys = append(xs, h.Truth), append(ys, h.Truth, h.Predicted)
		if h.Bound != 0 {
			ys = append(ys, h.Bound)
		}
	}
	p.span(xs, ys)
	ends := []float64{max(p.minX, p.minY), min(p.maxX, p.maxY)}
	p.line("even", ends, ends)
	for _, h := range f.report.HeldOut {
		if h.Bound != 0 {
			class := "bound"
			if h.Truth > h.Bound {
				class = "missed"
			}
			p.line(class, []float64{h.Truth, h.Truth}, []float64{h.Predicted, h.Bound})
		}
		p.dot(h.Truth, h.Predicted, fmt.Sprintf("measured %.4g, predicted %.4g, bound %.4g", h.Truth, h.Predicted, h.Bound))
	}
	return p.svg()
}

// residualPlot shows what held-out predictions miss, along a feature.
func residualPlot(f *fittedRegressor, feature int) template.HTML {
	name := f.data.Features[feature]
	p := &plot{title: "Residuals by " + name.Name, x: name.Name, y: "measured - predicted", names: name.Levels}
	if f.report.Transform == regress.Log {
		p.y = "measured / predicted - 1"
	}
	var xs, ys []float64
	for _, h := range f.report.HeldOut {
		y := h.Truth - h.Predicted
		if f.report.Transform == regress.Log {
			y = h.Truth/h.Predicted - 1
		}
		xs, ys = append(xs, h.Row[feature]), append(ys, y)
	}
	p.logX = name.Levels == nil && spansMuch(xs)
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

func importancePlot(f *fittedRegressor) (template.HTML, error) {
	shares, err := regress.Importance(f.predictor, f.data, 1)
	if err != nil {
		return "", err
	}
	p := &plot{title: "Importance: what shuffling a feature changes", x: "feature", y: "share", minX: -0.5, maxX: float64(len(shares)) - 0.5, maxY: 1.05 * max(0.01, slices.Max(shares))}
	for i, s := range shares {
		p.names = append(p.names, f.data.Features[i].Name)
		p.bar(float64(i), s, fmt.Sprintf("%s: %.3f", f.data.Features[i].Name, s))
	}
	return p.svg(), nil
}

// coveragePlot shows how often bounds held, with 95 % intervals, beside what was
// asked for.
func coveragePlot(f *fittedRegressor) template.HTML {
	type held struct {
		name  string
		asked float64
		ratio regress.Estimate
	}
	var all []held
	for _, c := range f.regressor.Manifest.Coverage {
		all = append(all, held{fmt.Sprintf("at %g", c.Level), c.Level, c.Ratio})
	}
	for _, g := range f.report.Groups {
		all = append(all, held{g.Level, f.report.Confidence, g.Coverage.Ratio})
	}
	p := &plot{title: "Coverage: share under the bound, dashed what was asked", x: "bound, and categories at the confidence", y: "share", minX: -0.5, maxX: float64(max(1, len(all))) - 0.5, minY: 0, maxY: 1.02}
	for i, h := range all {
		at := float64(i)
		p.names = append(p.names, h.name)
		p.line("even", []float64{at - 0.3, at + 0.3}, []float64{h.asked, h.asked})
		if math.IsNaN(h.ratio.Value) {
			continue
		}
		p.line("bound", []float64{at, at}, []float64{h.ratio.Low, h.ratio.High})
		p.dot(at, h.ratio.Value, fmt.Sprintf("%s: %.3f (%.3f to %.3f), asked %g", h.name, h.ratio.Value, h.ratio.Low, h.ratio.High, h.asked))
	}
	return p.svg()
}

const dependenceSteps = 40

// dependencePlot shows the mean prediction along a feature.
func dependencePlot(f *fittedRegressor, feature int) (template.HTML, error) {
	d := f.data.Features[feature]
	column := f.data.Columns[feature]
	low, high := slices.Min(column), slices.Max(column)
	p := &plot{title: "Partial dependence on " + d.Name, x: d.Name, y: f.unit(), names: d.Levels, logX: d.Levels == nil && spansMuch(column), logY: f.report.Transform == regress.Log}
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
	curve, err := regress.PartialDependence(f.predictor, f.data, feature, at)
	if err != nil {
		return "", err
	}
	p.span(at, curve)
	if d.Levels == nil {
		p.line("curve", at, curve)
		return p.svg(), nil
	}
	p.minX, p.maxX = -0.5, float64(len(d.Levels))-0.5
	for i, y := range curve {
		p.bar(at[i], y, fmt.Sprintf("%s: %.4g", d.Levels[i], y))
	}
	return p.svg(), nil
}

// threeDigits writes three digits, and whole numbers where there are more.
func threeDigits(x float64) string {
	if math.Abs(x) >= 1000 && math.Abs(x) < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"three":   threeDigits,
	"four":    func(x float64) string { return fmt.Sprintf("%.4f", x) },
	"percent": func(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) },
	"feature": featureWords,
	"unit":    inUnit,
	"shape":   transformWords,
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regressor of {{.Target}}</title>
<style>
:root{color-scheme:light dark;--ink:#1b1f24;--faint:#d6dae0;--soft:#5b6570;--blue:#1f5fa8;--red:#b3261e;--page:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--faint:#3a4149;--soft:#9aa4ae;--blue:#7fb2ec;--red:#ff8a80;--page:#15181c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:980px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.2rem .5rem;border-bottom:1px solid var(--faint)}th:first-child,td:first-child{text-align:left}
.wide{overflow-x:auto}.chosen{font-weight:600}.soft{color:var(--soft)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:1rem}figure{margin:0}svg{width:100%;height:auto}
svg text{fill:var(--ink);font-size:11px}svg .title{font-size:13px;font-weight:600}svg .tick{fill:var(--soft)}
.axis{fill:none;stroke:var(--soft)}.grid{stroke:var(--faint)}.dot{fill:var(--blue);fill-opacity:.75}.bar{fill:var(--blue)}
.even,.bound,.missed,.curve{fill:none;stroke-width:1.2}.even{stroke:var(--soft);stroke-dasharray:4 3}.bound{stroke:var(--blue);stroke-opacity:.45}.missed{stroke:var(--red)}.curve{stroke:var(--blue);stroke-width:2}
</style></head><body>
<h1>Regressor of {{.Target}}{{unit .Unit}}</h1>
<p>{{.Winner}}, {{shape .Transform}}, from {{.Examples}} examples of {{.Settings}} settings{{with .Version}}, by courier {{.}}{{end}}.</p>
<ul>{{range .Features}}<li>{{feature .}}</li>{{end}}
{{if .Empty}}<li>{{.Empty}} rows without {{.Target}} were left out</li>{{end}}{{range .Dropped}}<li>{{.Count}} examples were dropped: {{.Reason}}</li>{{end}}</ul>
<h2>Families and settings</h2>
<p>Judged on settings that were not learnt from: {{.Folds}} folds of settings, the median of {{.Shuffles}} shuffles and the range of 95 % of them, sorted by the pinball loss of the bound at {{.Confidence}}. The best of several looks a little better than it is. Baselines stand last.</p>
<div class="wide"><table><tr><th>method</th><th>pinball</th><th>MSE</th><th>R2</th><th>MAPE</th><th>under bound</th><th>bound / prediction</th></tr>
{{range .All}}<tr{{if eq .Name $.Winner}} class="chosen"{{end}}><td>{{.Name}}</td>{{if .Error}}<td colspan="6">{{.Error}}</td>{{else}}<td>{{three .Pinball.Value}}</td><td>{{three .MSE.Value}} <span class="soft">({{three .MSE.Low}} to {{three .MSE.High}})</span></td><td>{{four .R2.Value}}</td><td>{{percent .MAPE.Value}}</td><td>{{three .Coverage.Value}}</td><td>{{three .Width.Value}}</td>{{end}}</tr>
{{end}}</table></div>
<div class="plots">{{range .Plots}}<figure>{{.}}</figure>{{end}}</div>
{{with .Levels}}<h2>Between and beyond the measured levels</h2>
<p>All examples of a level are left out; the mean absolute error there, and the share under the bound.</p>
<div class="wide"><table><tr><th>method</th><th>feature</th><th>level</th><th>position</th><th>examples</th><th>MAPE</th><th>under bound</th></tr>
{{range .}}<tr><td>{{.Method}}</td><td>{{.Feature}}</td><td>{{.Level}}</td><td>{{if .Between}}between{{else}}beyond{{end}}</td><td>{{.Count}}</td><td>{{if ge .MAPE 0.0}}{{percent .MAPE}}{{end}}</td><td>{{if ge .Covered 0.0}}{{three .Covered}}{{end}}</td></tr>
{{end}}</table></div>{{end}}
</body></html>
`))
