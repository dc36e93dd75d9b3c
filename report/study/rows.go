package study

import (
	"fmt"

	"courier/report/shorten"
)

// estimateRow is a row of a chart of intervals: a name, its value in words, and the numbers.
type estimateRow struct {
	name, value         string
	estimate, low, high float64
}

// Sizes of a row of a chart of intervals.
const rowHeight, rowBar = 34.0, 16.0

// rowChart returns a chart with a row per estimate: the name above a point with its interval, so
// that long names fit on a phone.
func rowChart(title, x string, rows []estimateRow, high float64) *studyChart {
	const left, right, bottom = 6.0, 8.0, 38.0
	c := &studyChart{Title: title, X: x, Width: chartWidth}
	c.Height = rowHeight*float64(len(rows)) + bottom + 4
	c.x = chartAxis{low: 0, high: high}
	at := func(v float64) float64 { return left + c.x.share(v)*(c.Width-left-right) }
	floor := c.Height - bottom
	for _, v := range c.x.ticks() {
		path := fmt.Sprintf("M%s 2V%s", px(at(v)), px(floor))
		c.Shapes = append(c.Shapes, shape{Class: "grid", Path: path})
		anchor := "middle"
		switch {
		case at(v) < 20:
			anchor = "start"
		case at(v) > c.Width-30:
			anchor = "end"
		}
		c.text("tick", anchor, at(v), floor+14, number(v))
	}
	for i, row := range rows {
		y := 4 + rowHeight*float64(i)
		letters := maxLabel - len([]rune(row.value)) - 3
		c.text("row", "start", left, y+10, shorten.Name(row.name, letters, false))
		c.text("tick", "end", c.Width-right, y+10, row.value)
		middle := y + rowBar + 6
		path := fmt.Sprintf("M%s %sH%s", px(at(row.low)), px(middle), px(at(row.high)))
		for _, v := range []float64{row.low, row.high} {
			path += fmt.Sprintf("M%s %sV%s", px(at(v)), px(middle-4), px(middle+4))
		}
		c.Shapes = append(c.Shapes, shape{Class: "line reach", Path: path})
		c.Shapes = append(c.Shapes, shape{
			Class: "mark s0",
			Path:  markPath(0, at(row.estimate), middle, 4),
			Tip:   row.name + ": " + row.value,
		})
	}
	c.text("name", "middle", c.Width/2, c.Height-6, x)
	return c
}
