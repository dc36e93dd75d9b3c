package output

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// column is a column of a table of epochs.
type column struct {
	kind  metricKind
	scope scope
	words []string // of its name
}

// maxColumns bounds the columns of a table.
const maxColumns = 64

// tableLine reads the head and the rows of a table whose first column is the epoch, as fastai, a
// CSV logger and scikit-learn print it.
func (t *text) tableLine(line string, at time.Time) (reports []EpochReport, isRow bool) {
	if columns, separator := tableHead(line, t.kinds); columns != nil {
		t.columns, t.separator = columns, separator
		return nil, true
	}
	if t.columns == nil {
		return nil, false
	}
	fields := t.separator.split(line)
	if len(fields) < len(t.columns) {
		return nil, false
	}
	if m := barPercent.FindStringSubmatch(line); m != nil && m[1] != "100" {
		return nil, true
	}
	number, ok := rowNumber(fields[0])
	if !ok || t.hasLast && number <= t.last {
		return nil, ok
	}
	var m measurements
	for i, c := range t.columns[1:] {
		tokens := scan(fields[i+1])
		if len(tokens) == 1 && strings.TrimSpace(tokens[0].gap) == "" {
			tokens[0].words = c.words
			m.setMetric(c.kind, c.scope, &tokens[0], &t.percentages)
		}
	}
	if m.accuracy == nil && m.loss == nil {
		return nil, false
	}
	t.current = nil
	t.last, t.hasLast, t.isSeen = number, true, true
	return []EpochReport{{
		Epoch:    number,
		Seconds:  m.seconds,
		Loss:     m.loss,
		Accuracy: m.accuracy,
		Metric:   m.metric,
		At:       at,
	}}, true
}

// rowNumber reads 3 or 3/10.
func rowNumber(field string) (uint32, bool) {
	first, _, _ := strings.Cut(field, "/")
	n, err := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	return uint32(n), err == nil && n <= schemas.MaxEpochs
}

var tableKeys = []string{"epoch", "iter", "iteration", "round"}

// tableHead returns the columns of a head and what separates them, or nil.
func tableHead(line string, kinds MetricKinds) ([]column, separator) {
	separator := separatorOf(line)
	fields := separator.split(line)
	if len(fields) < 2 || len(fields) > maxColumns {
		return nil, ""
	}
	isSpaCy := fields[0] == "E" && fields[1] == "#"
	if !isSpaCy && !slices.Contains(tableKeys, strings.ToLower(fields[0])) {
		return nil, ""
	}
	columns := make([]column, len(fields))
	hasMetric := false
	for i, field := range fields {
		if field == "" || isDigit(field[0]) || strings.ContainsAny(field, ":=") {
			return nil, ""
		}
		words := nameWords(strings.ReplaceAll(field, "/", "_"))
		columns[i] = column{kind: kindOf(kinds.extend(words)), scope: scopeOf(words), words: words}
		if isSpaCy && field == "SCORE" { // the weighted score of the pipeline
			columns[i].kind, columns[i].scope = metricAccuracy, scopeValidation
		}
		hasMetric = hasMetric || i > 0 && columns[i].kind != noMetric
	}
	if !hasMetric {
		return nil, ""
	}
	return columns, separator
}

// separator is what separates the columns of a table.
type separator string

const (
	separatorBar    separator = "|"
	separatorComma  separator = ","
	separatorWide   separator = "  " // at least two blanks, or a tab
	separatorBlanks separator = " "
)

// wideBlanks separates columns whose names have several words.
var wideBlanks = regexp.MustCompile(`\s{2,}|\t`)

// separatorOf returns what separates the columns of a head.
func separatorOf(line string) separator {
	trimmed := strings.Trim(line, "| \t")
	switch {
	case strings.Contains(trimmed, "|"):
		return separatorBar
	case strings.Contains(trimmed, ","):
		return separatorComma
	case wideBlanks.MatchString(trimmed):
		return separatorWide
	}
	return separatorBlanks
}

// split returns the fields of a row.
func (s separator) split(line string) []string {
	trimmed := strings.Trim(line, "| \t")
	var fields []string
	switch s {
	case separatorBar, separatorComma:
		fields = strings.Split(trimmed, string(s))
	case separatorWide:
		fields = wideBlanks.Split(trimmed, -1)
	default:
		fields = strings.Fields(trimmed)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}
