package output

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"slices"
)

const (
	maxColumns = 64
	minColumns = 3
	maxTexts   = 3 // in a row of a logger's file; those of runs have more
)

// bar matches the begin of a progress bar behind its percentage.
var bar = regexp.MustCompile(`%(?:\|| [━─╸█])`)

// table reads rows below a line of names. Only the last such line counts.
type table struct {
	names     []name
	head      []byte // texts of the names, which refer to it
	counter   int    // column of the epochs; -1: none
	separator byte   // ' ' stands for any number of blanks
	cells     [][]byte
	scopes    []scope // of the columns of a table whose rows have names
	isFile    bool    // of a logger: two columns suffice, and cells may have any text
}

// read replaces the fields of a line that is a row of the table. It reports whether the line belongs
// to a table.
func (t *table) read(s *scanner) bool {
	if t.isHead(s) || t.isScopes(s) || t.namedRow(s) {
		return true
	}
	if len(t.names) == 0 || len(s.text) == 0 {
		return false
	}
	t.cells = t.cellsOf(s.text)
	n := len(t.names)
	isBar := len(t.cells) > n && t.separator == ' ' && bar.Match(s.text)
	if len(t.cells) != n && !isBar {
		return false
	}
	rest, behind := slices.Clone(s.fields), len(s.text)
	if isBar {
		behind = bar.FindIndex(s.text)[0]
	}
	if !t.row(s) {
		return false
	}
	for _, f := range rest { // the progress of a bar behind the row
		if f.begin > behind && f.total > 0 && f.name.isEmpty() && len(s.fields) < maxFields {
			s.fields = append(s.fields, f)
		}
	}
	return true
}

// cellsOf returns the cells of a row. In a file, those in quotes may have a separator.
func (t *table) cellsOf(text []byte) (cells [][]byte) {
	if !t.isFile || t.separator == ' ' || bytes.IndexByte(text, '"') < 0 {
		return split(text, t.separator)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.LazyQuotes = rune(t.separator), true
	row, err := r.Read()
	if err != nil {
		return nil
	}
	for _, cell := range row {
		cells = append(cells, []byte(cell))
	}
	return cells
}

// isScopes reports whether the line is the head "Training | Validation", and keeps it.
func (t *table) isScopes(s *scanner) bool {
	if len(s.fields) > 0 || bytes.IndexByte(s.text, '|') < 0 || s.name.scope == scopeNone &&
		s.line.scope == scopeNone {
		return false
	}
	var scopes []scope
	for i, c := range split(s.text, '|') {
		if c = bytes.TrimSpace(c); i == 0 && len(c) == 0 {
			continue // above the names of the rows
		}
		n := nameOf(c[bytes.LastIndexByte(c, ' ')+1:], nil)
		if n.scope == scopeNone || len(scopes) >= maxColumns {
			return false
		}
		scopes = append(scopes, n.scope)
	}
	t.scopes = scopes
	return true
}

// namedRow reads "accuracy | 0.5 | 0.6" below a head of scopes.
func (t *table) namedRow(s *scanner) bool {
	isNamed := func(f field) bool { return !f.name.isEmpty() }
	if len(t.scopes) == 0 || len(s.fields) != len(t.scopes) || slices.ContainsFunc(s.fields[1:], isNamed) {
		return false
	}
	for i, scope := range t.scopes {
		s.fields[i].name = s.fields[0].name
		s.fields[i].name.flags &^= flagExcluded // the numbers of a list are
		s.fields[i].name.scope = scope
	}
	return true
}

// row reads the cells. The column that counts must hold a number, and all others but one, which may
// be a date. Without such a column the first cell may be a name, such as that of a data set.
func (t *table) row(s *scanner) bool {
	fields := make([]field, 0, len(t.names))
	texts := 0
	rowScope := scopeNone
	for i := range t.names {
		f, ok := cell(s, t.cells[i])
		text := bytes.TrimSpace(t.cells[i])
		isText := !ok && len(text) > 0 && text[0] != '['
		switch {
		case ok:
			f.name = t.names[i]
			fields = append(fields, f)
		case isText && (i == t.counter || t.counter < 0 && i > 0):
			return false
		case isText:
			texts++
			rowScope = nameOf(t.cells[i], nil).scope
			if t.names[i].scope == scopeTrain && bytes.EqualFold(text, []byte("false")) {
				rowScope = scopeValidation // in a column that says whether the row is of the training
			}
		}
	}
	if len(fields) == 0 || texts > maxTexts || texts > 1 && !t.isFile {
		return false
	}
	s.fields = append(s.fields[:0], fields...)
	s.text, s.template = t.head, 1 // all rows are alike
	for i := range t.names {
		s.template = combine(s.template, t.names[i].hash)
		if i < len(s.fields) && s.fields[i].name.scope == scopeNone {
			s.fields[i].name.scope = rowScope
		}
		if i < len(s.fields) && texts > 0 && t.counter < 0 {
			s.fields[i].name.counter = countsNothing // a number of images behind the name of a class
		}
	}
	return true
}

// cell reads the number of a cell.
func cell(s *scanner, text []byte) (field, bool) {
	text = bytes.Trim(text, " \t|:\"'")
	if len(text) == 0 || !isDigit(text[0]) && text[0] != '-' && text[0] != '.' {
		return field{}, false
	}
	c := scanner{name: name{hash: 1}} // a name, so that a clock is a duration
	c.text = text
	if end := c.number(0); end < len(text) || len(c.fields) != 1 {
		return field{}, false
	}
	return c.fields[0], true
}

// isHead reports whether the line names columns, and keeps the names. One column must count epochs
// or rounds, or two must be metrics.
func (t *table) isHead(s *scanner) bool {
	least := minColumns
	if t.isFile {
		least = 2
	}
	isOfBar := func(f field) bool { return f.total > 0 || f.unit >= unitPercent && f.unit <= unitPer || f.isClock }
	isNumber := func(f field) bool { return !isOfBar(f) || !bar.Match(s.text) }
	if s.words < least || s.known == 0 || slices.ContainsFunc(s.fields, isNumber) {
		return false
	}
	text := bytes.TrimLeft(s.text, "# ")
	if at := bar.FindIndex(text); at != nil { // behind the names
		text = bytes.TrimRight(text[:at[0]], " :0123456789")
	}
	separator := separatorOf(text, least)
	t.cells = split(text, separator)
	if len(t.cells) < least || len(t.cells) > maxColumns {
		return false
	}
	counters, metrics, column := 0, 0, -1
	names := make([]name, 0, len(t.cells))
	var head []byte
	for _, c := range t.cells {
		names = append(names, nameOf(c, &head))
		n := &names[len(names)-1]
		if string(c) == "E" && len(names) == 1 { // the head of spaCy
			n.counter, n.unknown = countsEpochs, 0
		}
		switch {
		case n.kind != kindNone && n.kind != kindTime:
			metrics++
		case n.counter >= countsRounds:
			counters++
			if len(names) == 1 {
				n.flags &^= flagConfig // else the epochs of a run
			}
			if column < 0 || n.counter > names[column].counter {
				column = len(names) - 1
			}
		}
	}
	isOfEpochs := t.isFile && column >= 0 && names[column].counter == countsEpochs
	if counters != 1 && metrics < 2 && !isOfEpochs {
		return false
	}
	if separator == '2' {
		separator = ' ' // the numbers of a row have no blanks
	}
	t.names, t.head, t.counter, t.separator = names, head, column, separator
	return true
}

// nameOf returns the meaning of a name, and appends its text to head, which may be nil.
func nameOf(text []byte, head *[]byte) name {
	s := scanner{}
	s.text = bytes.Trim(text, " \t|:\"'")
	for i := 0; i < len(s.text); {
		size, ok := decodeLetter(s.text[i:])
		if ok || isLetter(s.text[i]) {
			i = s.word(i)
		} else {
			i += size
		}
	}
	if s.name.isEmpty() {
		s.name.hash = 1
	}
	if head == nil {
		return s.name
	}
	s.name.start = len(*head)
	*head = append(*head, s.text...)
	s.name.end = len(*head)
	return s.name
}

// separatorOf returns the separator of the cells of a head with a least number of columns.
func separatorOf(text []byte, least int) byte {
	for _, c := range []byte{',', '\t', ';', '|'} {
		if bytes.Count(text, []byte{c}) >= least-1 {
			return c
		}
	}
	if bytes.Contains(bytes.TrimSpace(text), []byte("  ")) {
		return '2' // names of several words, two blanks apart
	}
	return ' '
}

var wideGap = regexp.MustCompile(`[ \t]{2,}`)

// split returns the cells of a line.
func split(text []byte, separator byte) (cells [][]byte) {
	switch separator {
	case ' ':
		return bytes.Fields(text)
	case '2':
		for _, cell := range wideGap.Split(string(bytes.TrimSpace(text)), -1) {
			cells = append(cells, []byte(cell))
		}
		return cells
	case '|':
		text = bytes.Trim(bytes.TrimSpace(text), "|")
	}
	return bytes.Split(text, []byte{separator})
}
