package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"courier/report/shorten"
)

// studyChart is a plot, which the template of the page writes as inline SVG. Positions are in the units
// of the axes until a shape is added.
type studyChart struct {
	Title         string
	X, Y          string // names of the axes
	Width, Height float64
	Shapes        []shape
	Texts         []label

	x, y chartAxis
}

// shape is a path with a style class and a text that a pointer shows.
type shape struct{ Class, Path, Tip string }

// label is a text at a position in pixels.
type label struct {
	Class, Anchor, X, Y, Text string
}

// Sizes of a chart in the units of its view box. A view box is about as wide as a phone, so that
// texts keep their size there.
const (
	chartWidth, chartHeight = 400.0, 280.0
	chartLeft, chartRight   = 58.0, 10.0
	chartTop, chartBottom   = 24.0, 40.0
	letterWidth             = 6.2
)

// newChart returns a chart with axes. The title is also its accessible name.
func newChart(title, x, y string, xs, ys chartAxis) *studyChart {
	c := &studyChart{
		Title:  title,
		X:      x,
		Y:      y,
		Width:  chartWidth,
		Height: chartHeight,
		x:      xs,
		y:      ys,
	}
	c.drawY()
	c.drawX()
	c.Shapes = append(c.Shapes, shape{Class: "axis", Path: fmt.Sprintf("M%s %sV%sH%s",
		px(chartLeft), px(chartTop), px(chartHeight-chartBottom), px(chartWidth-chartRight))})
	return c
}

// drawX adds the labels of the x axis. Names are truncated, or left out at regular distances, if
// they do not fit.
func (c *studyChart) drawX() {
	bottom := chartHeight - chartBottom
	if c.x.names == nil {
		for _, v := range c.x.ticks() {
			c.text("tick", "middle", c.px(v), bottom+15, number(v))
		}
		c.text("name", "middle", (chartLeft+chartWidth-chartRight)/2, chartHeight-6, c.X)
		return
	}
	const minLetters = 4
	room := int(math.Floor((chartWidth - chartLeft - chartRight) / letterWidth))
	every := max(1, (len(c.x.names)*(minLetters+1)+room-1)/room)
	letters := max(minLetters, room*every/len(c.x.names)-1)
	for i := 0; i < len(c.x.names); i += every {
		name := shorten.Name(c.x.names[i], letters, shorten.SamePrefix(c.x.names))
		c.text("tick", "middle", c.px(float64(i)), bottom+15, name)
	}
	c.text("name", "middle", (chartLeft+chartWidth-chartRight)/2, chartHeight-6, c.X)
}

func (c *studyChart) drawY() {
	for _, v := range c.y.ticks() {
		c.Shapes = append(c.Shapes, shape{Class: "grid", Path: fmt.Sprintf("M%s %sH%s",
			px(chartLeft), px(c.py(v)), px(chartWidth-chartRight))})
		c.text("tick", "end", chartLeft-6, c.py(v)+4, number(v))
	}
	c.text("name", "start", 4, 13, c.Y)
}

func (c *studyChart) px(x float64) float64 {
	return chartLeft + c.x.share(x)*(c.Width-chartLeft-chartRight)
}

func (c *studyChart) py(y float64) float64 {
	return c.Height - chartBottom - c.y.share(y)*(c.Height-chartTop-chartBottom)
}

// maxLabel bounds the letters of a text of a chart to about its width.
const maxLabel = 60

func (c *studyChart) text(class, anchor string, x, y float64, text string) {
	c.Texts = append(c.Texts, label{
		Class:  class,
		Anchor: anchor,
		X:      px(x),
		Y:      px(y),
		Text:   shorten.Name(text, maxLabel, false),
	})
}

// line adds a line through points, moved to the right by some pixels.
func (c *studyChart) line(class string, xs, ys []float64, shift float64) {
	var path strings.Builder
	for i := range xs {
		command := "L"
		if i == 0 {
			command = "M"
		}
		path.WriteString(command + px(c.px(xs[i])+shift) + " " + px(c.py(ys[i])))
	}
	c.Shapes = append(c.Shapes, shape{Class: "line " + class, Path: path.String()})
}

// interval adds a vertical line with ends, moved to the right by some pixels.
func (c *studyChart) interval(class string, x, low, high, shift float64) {
	at := c.px(x) + shift
	path := fmt.Sprintf("M%s %sV%s", px(at), px(c.py(low)), px(c.py(high)))
	for _, y := range []float64{low, high} {
		path += fmt.Sprintf("M%s %sH%s", px(at-3), px(c.py(y)), px(at+3))
	}
	c.Shapes = append(c.Shapes, shape{Class: "line " + class, Path: path})
}

// mark adds a point of a series, moved to the right by some pixels.
func (c *studyChart) mark(series int, x, y, shift float64, tip string) {
	c.Shapes = append(c.Shapes, shape{
		Class: "mark " + seriesClass(series),
		Path:  markPath(series, c.px(x)+shift, c.py(y), 3.5),
		Tip:   tip,
	})
}

func (c *studyChart) dot(class string, x, y, shift float64, tip string) {
	c.Shapes = append(c.Shapes, shape{
		Class: "dot " + class,
		Path:  markPath(0, c.px(x)+shift, c.py(y), 2.2),
		Tip:   tip,
	})
}

// seriesClass returns one of five colours of the style sheet. Together with the shapes of markPath
// they repeat after 20 series.
func seriesClass(series int) string { return fmt.Sprintf("s%d", series%5) }

// markPath returns a circle, a square, a triangle or a diamond.
func markPath(series int, x, y, r float64) string {
	switch series % 4 {
	case 1:
		return fmt.Sprintf("M%s %sH%sV%sH%sZ", px(x-r), px(y-r), px(x+r), px(y+r), px(x-r))
	case 2:
		return fmt.Sprintf("M%s %sL%s %sH%sZ", px(x), px(y-r), px(x+r), px(y+r), px(x-r))
	case 3:
		return fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sZ", px(x), px(y-r-1), px(x+r+1), px(y), px(x),
			px(y+r+1), px(x-r-1), px(y))
	}
	return fmt.Sprintf("M%s %sa%s %s 0 1 0 %s 0a%s %s 0 1 0 %s 0", px(x-r), px(y), px(r), px(r),
		px(2*r), px(r), px(r), px(-2*r))
}

// px formats a length in the units of the view box.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
