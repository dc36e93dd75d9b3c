package report

import (
	"fmt"
	"html"
	"html/template"
	"math"

	"courier/schemas"
)

// axisPosition returns the position of a moment on the axis of versions. Version n was fitted at n;
// moments between two fits are interpolated by time.
func (t *targetLife) axisPosition(m *Moment) float64 {
	k := 0
	for k < len(t.Versions) && !t.Versions[k].TrainedAt.After(m.At) {
		k++
	}
	if k == 0 || k == len(t.Versions) {
		return float64(k) + t.after(m, k)
	}
	from, to := t.Versions[k-1].TrainedAt, t.Versions[k].TrainedAt
	return float64(k) + m.At.Sub(from).Seconds()/to.Sub(from).Seconds()
}

// after returns the distance of a moment from the last version, from 0 to 0.9.
func (t *targetLife) after(m *Moment, k int) float64 {
	if k == 0 || len(t.Moments) == 0 {
		return 0
	}
	from, end := t.Versions[k-1].TrainedAt, t.Moments[len(t.Moments)-1].At
	if !end.After(from) {
		return 0
	}
	return 0.9 * m.At.Sub(from).Seconds() / end.Sub(from).Seconds()
}

// axis returns a plot over versions that has a vertical line for each drift alarm.
func (t *targetLife) axis(title, y string, values []float64) *chart {
	n := len(t.Versions)
	p := &chart{title: title, x: "version", y: y, at: []float64{}}
	p.span(nil, append(values, 0))
	p.minX, p.maxX, p.minY = 0.5, float64(n)+1.1, 0
	for i := 1; i <= n; i += 1 + (n-1)/12 {
		p.at = append(p.at, float64(i))
	}
	for i := range t.Moments {
		if m := &t.Moments[i]; m.Kind == momentDrift {
			p.upright("drift", t.axisPosition(m), fmt.Sprintf("%s: %s", second(m.At), m.Reason))
		}
	}
	return p
}

// errorPlot plots the held-out error of each version as a point, and the champion's error over
// time as a line. It leaves out an error of 0, which is unknown.
func (t *targetLife) errorPlot() template.HTML {
	var errors []float64
	for i := range t.Versions {
		errors = append(errors, 100*t.Versions[i].MedianAbsoluteRatio)
	}
	p := t.axis("Held-out error; line: champion", "%", errors)
	begin, height := 0.0, math.NaN()
	for i := range t.Moments {
		m := &t.Moments[i]
		n := t.number(m.ModelDigest)
		if m.Kind != momentPromoted || n == 0 || errors[n-1] == 0 {
			continue
		}
		at := t.axisPosition(m)
		if !math.IsNaN(height) {
			p.line("curve", []float64{begin, at, at}, []float64{height, height, errors[n-1]})
		}
		begin, height = at, errors[n-1]
	}
	if !math.IsNaN(height) {
		p.line("curve", []float64{begin, p.maxX}, []float64{height, height})
	}
	for i := range t.Moments {
		m := &t.Moments[i]
		if n := t.number(m.ModelDigest); m.Kind == momentPromoted && n > 0 && errors[n-1] > 0 {
			p.upTriangle(t.axisPosition(m), errors[n-1],
				fmt.Sprintf("%s: version %d promoted: %s", second(m.At), n, m.Reason))
		}
	}
	for i := range t.Versions {
		v := &t.Versions[i]
		if errors[i] == 0 {
			continue
		}
		class := "hollow"
		if v.State == schemas.RegressorChampion || v.State == schemas.RegressorFormer {
			class = "dot"
		}
		p.mark(class, float64(i+1), errors[i],
			fmt.Sprintf("version %d, %.12s, %s: %.1f %% on %d examples of %d configurations", i+1,
				v.ModelDigest, v.State, errors[i], v.Examples, v.Settings))
	}
	return p.svg()
}

// judged returns the moments with a comparison.
func (t *targetLife) judged() []*Moment {
	var all []*Moment
	for i := range t.Moments {
		if m := &t.Moments[i]; m.Loss != nil && m.RivalLoss != nil && *m.RivalLoss > 0 {
			all = append(all, m)
		}
	}
	return all
}

// lossPlot plots the loss of each compared version divided by the loss of the other regressor.
func (t *targetLife) lossPlot() template.HTML {
	values := []float64{1}
	for _, m := range t.judged() {
		values = append(values, *m.Loss / *m.RivalLoss)
	}
	p := t.axis("Compared on the same later jobs: relative loss", "loss / loss of the other",
		values)
	p.line("even", []float64{p.minX, p.maxX}, []float64{1, 1})
	for _, m := range t.judged() {
		x, y := t.axisPosition(m), *m.Loss / *m.RivalLoss
		class := "dot"
		if m.Kind == momentRejected {
			class = "hollow"
		}
		if m.LossDifferenceLow != nil && m.LossDifferenceHigh != nil {
			p.line("bound", []float64{x, x}, []float64{
				1 + *m.LossDifferenceLow / *m.RivalLoss,
				1 + *m.LossDifferenceHigh / *m.RivalLoss,
			})
		}
		p.mark(class, x, y,
			fmt.Sprintf("version %d %s: %s", t.number(m.ModelDigest), m.Kind,
				judgementText(&m.Judgement)))
	}
	return p.svg()
}

// coveragePlot plots how often the bounds held for the jobs of the comparisons.
func (t *targetLife) coveragePlot() template.HTML {
	p := t.axis("Compared on the same later jobs: coverage of the bounds",
		"ratio of jobs (hollow: the other)", []float64{1})
	p.maxY = 1.04
	for _, m := range t.judged() {
		if m.CoverageRatio == nil || m.RivalCoverageRatio == nil {
			continue
		}
		x, name := t.axisPosition(m), fmt.Sprintf("version %d %s", t.number(m.ModelDigest), m.Kind)
		p.line("even", []float64{x - 0.3, x + 0.3}, []float64{m.JudgedLevel, m.JudgedLevel})
		p.mark("hollow", x, *m.RivalCoverageRatio,
			fmt.Sprintf("%s: coverage of the other %.3f of %d jobs", name, *m.RivalCoverageRatio, m.JudgedJobs))
		p.mark("dot", x, *m.CoverageRatio,
			fmt.Sprintf("%s: coverage %.3f of %d jobs, confidence %g", name, *m.CoverageRatio,
				m.JudgedJobs, m.JudgedLevel))
	}
	return p.svg()
}

// mark draws a dot with a class of the style sheet.
func (p *chart) mark(class string, x, y float64, tip string) {
	fmt.Fprintf(&p.marks,
		`<circle class="%s" cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`, class,
		p.px(x), p.py(y), html.EscapeString(tip))
}

// upTriangle draws a triangle below a point.
func (p *chart) upTriangle(x, y float64, tip string) {
	fmt.Fprintf(&p.marks,
		`<path class="promoted" d="M%.1f %.1fl5 8h-10z"><title>%s</title></path>`, p.px(x),
		p.py(y)+5, html.EscapeString(tip))
}

// upright draws a vertical line over the whole height, with a mark at its top.
func (p *chart) upright(class string, x float64, tip string) {
	fmt.Fprintf(&p.marks, `<g class="%s"><title>%s</title><path d="M%.1f %.1fV%.1f"/><path class="head" d="M%.1f %.1fl-4 -7h8z"/></g>`,
		class, html.EscapeString(tip), p.px(x), plotTop+2, plotHeight-plotBottom, p.px(x), plotTop+
			4)
}
