package importer

import (
	"regexp"
	"strings"
)

// numberForm is how a CSV file writes numbers. Its values decide: 512,5 has a decimal comma, 512.5 a decimal
// point, and 1,234 may be either. If the values do not decide, numbers stay as they are, and are refused.
type numberForm struct {
	isCSV     bool           // other sources have plain numbers
	hasCommas bool           // commas separate the cells
	thousands *regexp.Regexp // numbers with separators of thousands; nil: the form is not known
}

// Numbers with a comma or with a point, and those of them that may have separators of thousands.
var (
	withComma   = regexp.MustCompile(`^[-+]?[\d.]*,\d+(?: ?%)?$`)
	withPoint   = regexp.MustCompile(`^[-+]?[\d,]*\.\d+(?: ?%)?$`)
	mayBeCommas = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?: ?%)?$`)
	mayBePoints = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?(?: ?%)?$`)
)

// decide finds the form of the numbers in rows, and rewrites them.
func (f *numberForm) decide(rows []record) {
	if !f.isCSV {
		return
	}
	comma, point := false, false
	for i := range rows {
		for _, text := range rows[i].cells {
			comma = comma || withComma.MatchString(text) && !mayBeCommas.MatchString(text)
			point = point || withPoint.MatchString(text) && !mayBePoints.MatchString(text)
		}
	}
	switch {
	case comma && !point && !f.hasCommas:
		f.thousands = mayBePoints
	case !comma && (point || f.hasCommas):
		f.thousands = mayBeCommas
	}
	for i := range rows {
		f.plain(rows[i].cells)
	}
}

// plain rewrites the numbers of a row with a decimal point, and without separators of thousands.
func (f *numberForm) plain(cells map[string]string) {
	for name, text := range cells {
		switch {
		case f.thousands == mayBeCommas && mayBeCommas.MatchString(text):
			cells[name] = strings.ReplaceAll(text, ",", "")
		case f.thousands == mayBePoints && (withComma.MatchString(text) || mayBePoints.MatchString(text)):
			cells[name] = strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
		}
	}
}
