package importer

import (
	"regexp"
	"strings"
)

// Numbers with a comma or with a point, and those of them that may have separators of thousands.
var (
	withComma   = regexp.MustCompile(`^[-+]?[\d.]*,\d+(?: ?%)?$`)
	withPoint   = regexp.MustCompile(`^[-+]?[\d,]*\.\d+(?: ?%)?$`)
	mayBeCommas = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?: ?%)?$`)
	mayBePoints = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?(?: ?%)?$`)
)

// thousandsOf returns the form of numbers with separators of thousands in rows of a CSV file. Its values decide:
// 512,5 has a decimal comma, 512.5 a decimal point, and 1,234 may be either. If they do not decide, it returns
// nil: numbers stay as they are, and are refused. The separator of cells is comma.
func thousandsOf(rows []record, comma rune) *regexp.Regexp {
	hasComma, hasPoint := false, false
	for i := range rows {
		for _, text := range rows[i].cells {
			hasComma = hasComma || withComma.MatchString(text) && !mayBeCommas.MatchString(text)
			hasPoint = hasPoint || withPoint.MatchString(text) && !mayBePoints.MatchString(text)
		}
	}
	switch {
	case hasComma && !hasPoint && comma != ',':
		return mayBePoints
	case !hasComma && (hasPoint || comma == ','):
		return mayBeCommas
	}
	return nil
}

// writePlain rewrites the numbers of a row with a decimal point, and without separators of thousands.
func writePlain(cells map[string]string, thousands *regexp.Regexp) {
	for name, text := range cells {
		switch {
		case thousands == mayBeCommas && mayBeCommas.MatchString(text):
			cells[name] = strings.ReplaceAll(text, ",", "")
		case thousands == mayBePoints && (withComma.MatchString(text) || mayBePoints.MatchString(text)):
			cells[name] = strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
		}
	}
}
