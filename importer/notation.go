package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Numbers with a decimal comma, and dates that begin with the day or the month.
var (
	commaForm = regexp.MustCompile(`^[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,(\d+))?\s*%?$`)
	dateForm  = regexp.MustCompile(`^(\d{1,2})([./-])(\d{1,2})[./-](\d{4})\b[T, ]*(.*)$`)
)

// notation is how the cells of a table are written where that differs by country. The values of whole
// columns decide, because one value alone may mean two things.
type notation struct {
	decimalComma map[string]bool // columns
	dates        map[string]bool // columns of dates
	isDayFirst   bool
	isMonthFirst bool
}

// notationOf reads the notation of the columns of a table.
func notationOf(header []string, values func(name string) []string) notation {
	n := notation{decimalComma: map[string]bool{}, dates: map[string]bool{}}
	isDecided := false
	for _, name := range header {
		all := values(name)
		commas, dates := 0, 0
		for _, v := range all {
			if m := commaForm.FindStringSubmatch(v); m != nil {
				commas++
				// 1,234 may be a thousand, 0,123 and 1,23 not.
				isDecided = isDecided || m[1] != "" && (len(m[1]) != 3 || strings.HasPrefix(v, "0,"))
			}
			if m := dateForm.FindStringSubmatch(v); m != nil {
				dates++
				first, _ := strconv.Atoi(m[1]) // two digits
				second, _ := strconv.Atoi(m[3])
				n.isDayFirst = n.isDayFirst || m[2] == "." || first > 12
				n.isMonthFirst = n.isMonthFirst || second > 12
			}
		}
		n.decimalComma[name] = commas == len(all)
		n.dates[name] = dates > 0 && 2*dates >= len(all)
	}
	if !isDecided {
		clear(n.decimalComma)
	}
	return n
}

// rewrite rewrites the cells of a row.
func (n *notation) rewrite(cells map[string]string) {
	for name, text := range cells {
		switch {
		case n.decimalComma[name] && strings.Contains(text, ","):
			cells[name] = strings.Replace(strings.ReplaceAll(text, ".", ""), ",", ".", 1)
		case n.dates[name] && n.isDayFirst != n.isMonthFirst:
			cells[name] = n.date(text)
		}
	}
}

// date returns a date with the year first, and its time of day of 24 hours.
func (n *notation) date(text string) string {
	m := dateForm.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	day, month := m[1], m[3]
	if n.isMonthFirst {
		day, month = month, day
	}
	clock := m[5]
	for _, layout := range []string{"3:04:05 PM", "3:04 PM"} {
		if t, err := time.Parse(layout, strings.ToUpper(clock)); err == nil {
			clock = t.Format(time.TimeOnly)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s-%02s-%02s %s", m[4], month, day, clock))
}
