package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"courier/report/shorten"
)

// chart is a plot as inline SVG: axes, and marks in the units of the data. The style sheet of the
// page has its colours, for light and dark mode.
type chart struct {
	title, x, y            string
	logX, logY             bool
	minX, maxX, minY, maxY float64
	names                  []string  // names of the positions 0, 1, 2 … on the x axis, for categories
	at                     []float64 // ticks of the x axis; nil: round numbers
	marks                  strings.Builder
}

const (
	plotWidth, plotHeight                    = 460.0, 340.0
	plotLeft, plotRight, plotTop, plotBottom = 62.0, 14.0, 30.0, 46.0
)

// span sets the ranges of the axes to the ranges of the values, with a margin.
func (p *chart) span(xs, ys []float64) {
	p.minX, p.maxX = around(xs, p.logX)
	p.minY, p.maxY = around(ys, p.logY)
}

func around(values []float64, log bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	switch {
	case len(values) == 0:
		return 0, 1
	case log && low > 0:
		edge := math.Pow(high/low, 0.05) * 1.02
		return low / edge, high * edge
	case low == high:
		return low - 1, high + 1
	}
	return low - 0.05*(high-low), high + 0.05*(high-low)
}

func (p *chart) px(x float64) float64 {
	return plotLeft + fraction(x, p.minX, p.maxX, p.logX)*(plotWidth-plotLeft-plotRight)
}

func (p *chart) py(y float64) float64 {
	return plotHeight - plotBottom - fraction(y, p.minY, p.maxY, p.logY)*(plotHeight-plotTop-plotBottom)
}

// fraction returns the position of v between low and high, from 0 to 1.
func fraction(v, low, high float64, log bool) float64 {
	if log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return min(max((v-low)/(high-low), -0.02), 1.02)
}

func (p *chart) dot(x, y float64, tip string) {
	fmt.Fprintf(&p.marks,
		`<circle class="dot" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, p.px(x),
		p.py(y), html.EscapeString(tip))
}

func (p *chart) line(class string, xs, ys []float64) {
	var points []string
	for i := range xs {
		points = append(points, fmt.Sprintf("%.1f,%.1f", p.px(xs[i]), p.py(ys[i])))
	}
	fmt.Fprintf(&p.marks, `<polyline class="%s" points="%s"/>`, class, strings.Join(points, " "))
}

// bar draws a column from 0, or from the x axis if 0 is not visible.
func (p *chart) bar(x, y float64, tip string) {
	floor := p.py(max(p.minY, 0))
	width := 0.6 * (p.px(1) - p.px(0))
	fmt.Fprintf(&p.marks, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
		p.px(x)-width/2, min(p.py(y), floor), width, math.Abs(floor-p.py(y)),
		html.EscapeString(tip))
}

// svg returns the axes and the marks as SVG.
func (p *chart) svg() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s"><text class="title" x="8" y="18">%s</text>`,
		plotWidth, plotHeight, html.EscapeString(p.title), html.EscapeString(p.title))
	bottom, right := plotHeight-plotBottom, plotWidth-plotRight
	fmt.Fprintf(&b, `<path class="axis" d="M%.1f %.1fV%.1fH%.1f"/>`, plotLeft, plotTop, bottom,
		right)
	for _, t := range p.ticksX() {
		fmt.Fprintf(&b, `<text class="tick" text-anchor="middle" x="%.1f" y="%.1f">%s</text>`,
			p.px(t.at), bottom+16, html.EscapeString(t.name))
	}
	for _, v := range ticks(p.minY, p.maxY, p.logY) {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fH%.1f"/><text class="tick" text-anchor="end" x="%.1f" y="%.1f">%s</text>`,
			plotLeft, p.py(v), right, plotLeft-6, p.py(v)+4, short(v))
	}
	fmt.Fprintf(&b, `<text class="label" text-anchor="middle" x="%.1f" y="%.1f">%s</text>`,
		(plotLeft+right)/2, plotHeight-8, html.EscapeString(p.x))
	fmt.Fprintf(&b,
		`<text class="label" text-anchor="middle" transform="translate(14 %.1f) rotate(-90)">%s</text>`,
		(plotTop+bottom)/2, html.EscapeString(p.y))
	b.WriteString(p.marks.String())
	b.WriteString("</svg>")
	return template.HTML(b.String()) // All names are escaped.
}

// tick is a labelled position on an axis.
type tick struct {
	at   float64
	name string
}

// letterWidth is the approximate width of a letter of a tick.
const letterWidth = 6.5

// ticksX returns the ticks of the x axis: names of categories, truncated to fit, or numbers.
func (p *chart) ticksX() []tick {
	var all []tick
	if p.names == nil {
		at := p.at
		if at == nil {
			at = ticks(p.minX, p.maxX, p.logX)
		}
		for _, v := range at {
			all = append(all, tick{v, short(v)})
		}
		return all
	}
	const minLetters = 4 // of a truncated name
	room := int(math.Floor((plotWidth - plotLeft - plotRight) / letterWidth))
	every := max(1, (len(p.names)*(minLetters+1)+room-1)/room)
	letters := max(minLetters, room*every/max(1, len(p.names))-1)
	for i := 0; i < len(p.names); i += every {
		all = append(all, tick{float64(i), shorten.Name(p.names[i], letters, shorten.SamePrefix(p.names))})
	}
	return all
}

// fewValues returns the distinct values of a column if their labels fit on an axis; otherwise nil.
func fewValues(column []float64, log bool) []float64 {
	values := slices.Compact(slices.Sorted(slices.Values(column)))
	low, high := around(values, log)
	for i := 1; i < len(values); i++ {
		if fraction(values[i], low, high, log)-fraction(values[i-1], low, high, log) < 0.07 {
			return nil
		}
	}
	return values
}

func short(v float64) string {
	if math.Abs(v) >= 1e5 {
		return fmt.Sprintf("%.1e", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// ticks returns round numbers between low and high.
func ticks(low, high float64, log bool) []float64 {
	var all []float64
	if log {
		for power := math.Floor(math.Log10(low)); power <= math.Log10(high) &&
			len(all) < 40; power++ {
			for _, digit := range []float64{1, 2, 5} {
				if v := digit * math.Pow(10, power); v >= low && v <= high {
					all = append(all, v)
				}
			}
		}
		if len(all) > 1 {
			for len(all) > 9 {
				var kept []float64
				for i := 0; i < len(all); i += 2 {
					kept = append(kept, all[i])
				}
				all = kept
			}
			return all
		}
		all = nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, times := range []float64{5, 2} {
		if (high-low)/(step*times) >= 3 {
			step *= times
			break
		}
	}
	for k := math.Ceil(low / step); k*step <= high && len(all) < 40; k++ {
		all = append(all, k*step)
	}
	return all
}
