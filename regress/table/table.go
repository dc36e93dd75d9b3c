// Package table reads tables of examples, CSV or JSON lines. Where changes a Table, which must not be
// used concurrently meanwhile.
package table

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is a file of examples: a name for each column, and a cell for each name in every row.
type Table struct {
	Header []string
	Rows   [][]string
}

// Read reads CSV with a header line, or JSON lines: an object per line, with numbers, strings,
// booleans, null or such objects as values. A field of an inner object is named outer.inner.
func Read(r io.Reader) (*Table, error) {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3) // they are buffered
	}
	for {
		first, err := b.Peek(1)
		switch {
		case err == io.EOF:
			return nil, errors.New("the file is empty")
		case err != nil:
			return nil, err
		case first[0] == '{':
			return readJSONLines(b)
		case !strings.ContainsRune(" \t\r\n", rune(first[0])):
			return readCSV(b)
		}
		_, _ = b.Discard(1) // it is buffered
	}
}

// OpenCSV returns a reader of the rows below a header, and the header. The separator of cells is the comma,
// semicolon, tab or bar, whichever occurs most often in the header.
func OpenCSV(r io.Reader) (rows *csv.Reader, header []string, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	begin, err := b.Peek(b.Size())
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	line, _, _ := strings.Cut(string(begin), "\n")
	rows = csv.NewReader(b)
	rows.TrimLeadingSpace = true
	for _, separator := range ";\t|" {
		if strings.Count(line, string(separator)) > strings.Count(line, string(rows.Comma)) {
			rows.Comma = separator
		}
	}
	if header, err = rows.Read(); err != nil {
		return nil, nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
	}
	return rows, header, nil
}

func readCSV(r io.Reader) (*Table, error) {
	c, header, err := OpenCSV(r)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	t := &Table{}
	seen := make(map[string]bool, len(header))
	for i, name := range header {
		if name == "" && i == 0 {
			name = indexName
		}
		if name == "" || seen[name] {
			return nil, fmt.Errorf("header: column %d is named %q, want a name of its own", i+1,
				name)
		}
		seen[name] = true
		t.Header = append(t.Header, name)
	}
	t.Rows, err = c.ReadAll()
	return t, err
}

// indexName is the name of a first column without one, as pandas writes the index of a table.
const indexName = "index"

// A table of JSON lines with more than smallTable cells must have a value in one of maxEmpty cells,
// so that memory stays within a multiple of the size of the file.
const smallTable, maxEmpty = 1 << 20, 32

// readJSONLines orders the columns by the example with the first value, and then by name.
func readJSONLines(r io.Reader) (*Table, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	t, at := &Table{}, make(map[string]int)
	filled := 0
	for {
		var object map[string]any
		err := d.Decode(&object)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = t.addObject(object, at)
		}
		if err != nil {
			return nil, fmt.Errorf("example %d: %w", len(t.Rows)+1, err)
		}
		filled += len(object)
		if cells := len(t.Rows) * len(t.Header); cells > smallTable && cells > maxEmpty*filled {
			return nil, fmt.Errorf("%d examples have %d different fields, but only %d values",
				len(t.Rows), len(t.Header), filled)
		}
	}
	for i, row := range t.Rows {
		t.Rows[i] = append(row, make([]string, len(t.Header)-len(row))...)
	}
	if len(t.Header) == 0 {
		return nil, errors.New("the examples have no fields")
	}
	return t, nil
}

// addObject adds a row, and columns for new fields; at has the indices of the columns.
func (t *Table) addObject(object map[string]any, at map[string]int) error {
	if object == nil {
		return errors.New("it is null, want an object")
	}
	flatten(object)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, known := at[name]; !known {
			at[name] = len(t.Header)
			t.Header = append(t.Header, name)
		}
	}
	cells := make([]string, len(t.Header))
	for name, value := range object {
		switch value := value.(type) {
		case []any, nil: // a cell cannot hold a list
		default:
			cells[at[name]] = fmt.Sprint(value)
		}
		if name == "" {
			return errors.New("a field has no name")
		}
	}
	t.Rows = append(t.Rows, cells)
	return nil
}

// flatten replaces the fields that are objects by their own fields, named outer.inner.
func flatten(object map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner, isObject := object[name].(map[string]any)
		if !isObject {
			continue
		}
		flatten(inner)
		delete(object, name)
		for k, v := range inner {
			object[name+"."+k] = v
		}
	}
}

// Column returns the index of a column.
func (t *Table) Column(name string) (int, error) {
	i := slices.Index(t.Header, name)
	if i < 0 {
		return 0, fmt.Errorf("there is no column %q among %s", name, strings.Join(t.Header, ", "))
	}
	return i, nil
}

// Where keeps the rows in which columns have the given values.
func (t *Table) Where(conditions map[string]string) error {
	for name, value := range conditions {
		k, err := t.Column(name)
		if err != nil {
			return fmt.Errorf("where: %w", err)
		}
		t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool {
			return strings.TrimSpace(row[k]) != value
		})
	}
	return nil
}

// Number returns the number in a cell; NaN if it is not a number.
func Number(cell string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}
