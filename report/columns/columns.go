// Package columns writes results for people and programs: text whose tables fit the terminal, and CSV.
//
// A result writes its tables as lines with a tab between cells, and Layout.Format aligns them. Adjacent
// lines with tabs are a table. One of two columns has a name and a text in each line; in a wider one the
// first line is the header. Both functions are pure.
package columns

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"courier/report/shorten"
)

// Layout is how text is shown.
type Layout struct {
	Width int  // of the terminal in characters; 0: no limit
	Color bool // use the colours of the terminal
	// OneLine shortens the last column instead of wrapping it.
	OneLine bool
}

const (
	gap          = 2  // spaces between columns
	narrowest    = 14 // a column of text is not shortened below this width
	narrowestEnd = 20 // a last column of text, which continues on further lines
)

// Format aligns the tables of a text. Of a table that is wider than the terminal, the last column of
// text is wrapped, then texts are shortened, and then columns are left out from the right, which a line
// below the table names. Other lines do not change, so that a command can be copied.
func (l Layout) Format(text string) string {
	var out strings.Builder
	var rows [][]string
	flush := func() {
		if len(rows) > 0 {
			l.write(&out, newTable(rows))
		}
		rows = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\t"), "\t"))
			continue
		}
		flush()
		out.WriteString(line + "\n")
	}
	flush()
	return out.String()
}

// table is a table with the same number of cells in each row.
type table struct {
	rows   [][]string
	widths []int
	isText []bool // at least one cell below the header is not a number
}

// number matches a cell of a column that is aligned to the right.
var number = regexp.MustCompile(`^(-|(over |under |[-+])?[\d.][\d.,/e+-]*` +
	`( ?(%|s|ms|m|h|d))?( \d+[hms]| [\d:]+Z| to [-\d.]+( %)?)?)?$`)

func newTable(rows [][]string) *table {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	t := &table{widths: make([]int, columns), isText: make([]bool, columns)}
	for i, row := range rows {
		row = append(row, make([]string, columns-len(row))...)
		for k, cell := range row {
			t.widths[k] = max(t.widths[k], utf8.RuneCountInString(cell))
			isBody := i > 0 || columns == 2
			t.isText[k] = t.isText[k] || isBody && !number.MatchString(cell)
		}
		t.rows = append(t.rows, row)
	}
	if columns == 2 {
		t.isText[1] = true
	}
	return t
}

// width returns the width of a line.
func (t *table) width() int {
	total := gap * (len(t.widths) - 1)
	for _, w := range t.widths {
		total += w
	}
	return total
}

// fit makes the columns narrow enough, and returns the names of those that are left out.
func (t *table) fit(width int) (left []string) {
	last := len(t.widths) - 1
	if excess := t.width() - width; excess > 0 && t.isText[last] {
		t.widths[last] = max(min(narrowestEnd, t.widths[last]), t.widths[last]-excess)
	}
	for t.width() > width {
		widest := -1
		for k, w := range t.widths[:last] {
			if t.isText[k] && w > narrowest && (widest < 0 || w > t.widths[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			break
		}
		t.widths[widest]--
	}
	for t.width() > width && len(t.widths) > 2 {
		last = len(t.widths) - 1
		left = append(left, t.rows[0][last])
		t.widths = t.widths[:last]
	}
	slices.Reverse(left)
	return left
}

func (l Layout) write(out *strings.Builder, t *table) {
	var left []string
	if l.Width > 0 {
		left = t.fit(l.Width)
	}
	for i, row := range t.rows {
		out.WriteString(l.line(t, row, i == 0 && len(row) > 2) + "\n")
	}
	if len(left) > 0 {
		out.WriteString("(too narrow for: " + strings.Join(left, ", ") + ")\n")
	}
}

// line returns a row, whose last cell may take several lines.
func (l Layout) line(t *table, row []string, isHeader bool) string {
	var b strings.Builder
	last, indent := len(t.widths)-1, 0
	for k, w := range t.widths[:last] {
		isName := isHeader || k == 0 && len(row) == 2
		b.WriteString(l.cell(shorten.Name(row[k], w), w, t.isText[k], isName))
		b.WriteString(strings.Repeat(" ", gap))
		indent += w + gap
	}
	var lines []string
	parts := []string{shorten.Name(row[last], t.widths[last])}
	if !l.OneLine {
		parts = wrapped(row[last], t.widths[last])
	}
	for _, part := range parts {
		b.WriteString(l.cell(part, t.widths[last], t.isText[last], isHeader))
		lines = append(lines, strings.TrimRight(b.String(), " "))
		b.Reset()
		b.WriteString(strings.Repeat(" ", indent))
	}
	return strings.Join(lines, "\n")
}

// cell aligns a text to the left or a number to the right, and paints it.
func (l Layout) cell(text string, width int, isText, isName bool) string {
	padding := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	text = l.paint(text, isName)
	if isText {
		return text + padding
	}
	return padding + text
}

// wrapped breaks a text at spaces. A longer word gets a line of its own.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colors are the colours of cells that begin with these words.
var colors = map[string]string{
	"failed": red, "fail": red, "lost": red, "missed": red, "refused": red, "at risk": red,
	"met": green, "ok": green, "meets_slo": green,
	"queued": yellow, "warn": yellow, "exploring": yellow, "best_effort": yellow,
}

func (l Layout) paint(text string, isName bool) string {
	first, _, _ := strings.Cut(text, ":")
	color := colors[first]
	if isName {
		color = bold
	}
	if !l.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
