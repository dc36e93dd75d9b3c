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
}

// maxColumns bounds the columns of a table.
const maxColumns = 64

// tableLine reads the head and the rows of a table whose first column is the epoch, as fastai, a
// CSV logger and scikit-learn print it.
func (t *text) tableLine(line string, at time.Time) (reports []EpochReport, isRow bool) {
	if columns := tableHead(line); columns != nil {
		t.columns = columns
		return nil, true
	}
	if t.columns == nil {
		return nil, false
	}
	fields := tableFields(line)
	if len(fields) < len(t.columns) {
		return nil, false
	}
	number, ok := rowNumber(fields[0])
	if !ok || t.hasLast && number <= t.last {
		return nil, ok
	}
	var m measurements
	for i, c := range t.columns[1:] {
		tokens := scan(fields[i+1])
		if len(tokens) == 1 && strings.TrimSpace(tokens[0].gap) == "" {
			m.setMetric(c.kind, c.scope, tokens[0].value, tokens[0].unit, &t.percentages)
		}
	}
	if m.accuracy == nil && m.loss == nil {
		return nil, false
	}
	t.current = nil
	t.last, t.hasLast, t.isSeen = number, true, true
	return []EpochReport{{
		Epoch: number, Seconds: m.seconds, Loss: m.loss, Accuracy: m.accuracy, At: at,
	}}, true
}

// rowNumber reads 3 or 3/10.
func rowNumber(field string) (uint32, bool) {
	first, _, _ := strings.Cut(field, "/")
	n, err := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	return uint32(n), err == nil && n <= schemas.MaxEpochs
}

var tableKeys = []string{"epoch", "iter", "iteration", "round"}

// tableHead returns the columns of a head, or nil.
func tableHead(line string) []column {
	fields := tableFields(line)
	if len(fields) < 2 || len(fields) > maxColumns ||
		!slices.Contains(tableKeys, strings.ToLower(fields[0])) {
		return nil
	}
	columns := make([]column, len(fields))
	hasMetric := false
	for i, field := range fields {
		if field == "" || isDigit(field[0]) || strings.ContainsAny(field, ":=") {
			return nil
		}
		words := nameWords(strings.ReplaceAll(field, "/", "_"))
		columns[i] = column{kind: kindOf(words), scope: scopeOf(words)}
		hasMetric = hasMetric || i > 0 && columns[i].kind != noMetric
	}
	if !hasMetric {
		return nil
	}
	return columns
}

// wideBlanks separates columns whose names have several words.
var wideBlanks = regexp.MustCompile(`\s{2,}|\t`)

// tableFields splits a row at its separators.
func tableFields(line string) []string {
	var fields []string
	switch trimmed := strings.Trim(line, "| \t"); {
	case strings.Contains(trimmed, "|"):
		fields = strings.Split(trimmed, "|")
	case strings.Contains(trimmed, ","):
		fields = strings.Split(trimmed, ",")
	case wideBlanks.MatchString(trimmed):
		fields = wideBlanks.Split(trimmed, -1)
	default:
		fields = strings.Fields(trimmed)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}
