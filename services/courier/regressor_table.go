package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"courier/regress"
)

// exampleTable is a file of examples as it was read: a name per column, and as
// many cells in every row.
type exampleTable struct {
	header []string
	rows   [][]string
}

// readExamples reads CSV with a header line, or JSON lines: an object per line,
// whose values are numbers, strings, booleans or null.
func readExamples(r io.Reader) (*exampleTable, error) {
	b := bufio.NewReader(r)
	if mark, err := b.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := b.Discard(3); err != nil {
			return nil, err
		}
	}
	for {
		first, err := b.ReadByte()
		if err == io.EOF {
			return nil, errors.New("the file is empty")
		}
		if err != nil {
			return nil, err
		}
		if first == ' ' || first == '\t' || first == '\r' || first == '\n' {
			continue
		}
		if err := b.UnreadByte(); err != nil {
			return nil, err
		}
		if first == '{' {
			return readJSONLines(b)
		}
		return readCSV(b)
	}
}

func readCSV(r io.Reader) (*exampleTable, error) {
	c := csv.NewReader(r)
	header, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	t := &exampleTable{}
	seen := make(map[string]bool, len(header))
	for i, name := range header {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] {
			return nil, fmt.Errorf("header: column %d is named %q, want a name of its own", i+1, name)
		}
		seen[name] = true
		t.header = append(t.header, name)
	}
	for {
		row, err := c.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, row)
	}
}

// A table of JSON lines may not be nearly empty: memory stays within a multiple of
// the file. Small ones are as they like.
const smallTable, mostEmpty = 1 << 20, 32

// readJSONLines takes the columns in the order in which fields first appear.
func readJSONLines(r io.Reader) (*exampleTable, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	t := &exampleTable{}
	at := make(map[string]int)
	filled := 0
	for line := 1; ; line++ {
		cells, err := readObject(d, at, t)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("example %d: %w", line, err)
		}
		t.rows = append(t.rows, cells)
		for _, cell := range cells {
			if cell != "" {
				filled++
			}
		}
		if room := len(t.rows) * len(t.header); room > smallTable && room > mostEmpty*filled {
			return nil, fmt.Errorf("%d examples have %d different fields, but only %d values", len(t.rows), len(t.header), filled)
		}
	}
	for i, row := range t.rows {
		t.rows[i] = append(row, make([]string, len(t.header)-len(row))...)
	}
	if len(t.header) == 0 {
		return nil, errors.New("the examples have no fields")
	}
	return t, nil
}

// readObject reads the next example; io.EOF says that there is none.
func readObject(d *json.Decoder, at map[string]int, t *exampleTable) ([]string, error) {
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	cells, err := readFields(d, open, at, t)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return cells, err
}

func readFields(d *json.Decoder, open json.Token, at map[string]int, t *exampleTable) ([]string, error) {
	if open != json.Delim('{') {
		return nil, fmt.Errorf("starts with %v, want an object", open)
	}
	var cells []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // keys of objects are strings
		if name == "" {
			return nil, errors.New("a field has no name")
		}
		value, err := d.Token()
		if err != nil {
			return nil, err
		}
		if _, nested := value.(json.Delim); nested {
			return nil, fmt.Errorf("field %s: want a number, a string, a boolean or null", name)
		}
		k, known := at[name]
		if !known {
			k = len(t.header)
			at[name] = k
			t.header = append(t.header, name)
		}
		for len(cells) <= k {
			cells = append(cells, "")
		}
		if value != nil {
			cells[k] = fmt.Sprint(value)
		}
	}
	_, err := d.Token()
	return cells, err
}

// column returns the number of a column.
func (t *exampleTable) column(name string) (int, error) {
	i := slices.Index(t.header, name)
	if i < 0 {
		return 0, fmt.Errorf("there is no column %q among %s", name, strings.Join(t.header, ", "))
	}
	return i, nil
}

// where keeps the rows in which columns have the given values.
func (t *exampleTable) where(conditions map[string]string) error {
	for name, value := range conditions {
		k, err := t.column(name)
		if err != nil {
			return fmt.Errorf("where: %w", err)
		}
		t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return strings.TrimSpace(row[k]) != value })
	}
	return nil
}

// number reads a cell; what is no number is NaN.
func number(cell string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// mostlyNumbers is the share of cells that must be numbers for a column to hold
// numbers, and not names of levels: a few misprints are dropped and counted.
const mostlyNumbers = 0.95

// feature describes a column, by its cells if its levels are not known.
func (t *exampleTable) feature(name string, category bool) (regress.Feature, error) {
	k, err := t.column(name)
	if err != nil {
		return regress.Feature{}, err
	}
	f := regress.Feature{Name: name}
	filled, numbers := 0, 0
	levels := make(map[string]struct{})
	for _, row := range t.rows {
		cell := strings.TrimSpace(row[k])
		if cell == "" {
			continue
		}
		filled++
		levels[cell] = struct{}{}
		if !math.IsNaN(number(cell)) || strings.EqualFold(cell, "nan") {
			numbers++
		}
	}
	if filled == 0 {
		return f, fmt.Errorf("column %s is empty", name)
	}
	if !category && float64(numbers) >= mostlyNumbers*float64(filled) {
		return f, nil
	}
	for level := range levels {
		f.Levels = append(f.Levels, level)
	}
	slices.Sort(f.Levels)
	return f, nil
}

// values are a column as numbers: levels by their index, what is unknown as NaN.
func (t *exampleTable) values(f regress.Feature) ([]float64, error) {
	k, err := t.column(f.Name)
	if err != nil {
		return nil, err
	}
	levels := make(map[string]int, len(f.Levels))
	for i, name := range f.Levels {
		levels[name] = i
	}
	values := make([]float64, len(t.rows))
	for i, row := range t.rows {
		cell := strings.TrimSpace(row[k])
		switch level, known := levels[cell]; {
		case f.Levels == nil:
			values[i] = number(cell)
		case known:
			values[i] = float64(level)
		default:
			values[i] = math.NaN()
		}
	}
	return values, nil
}

// groups numbers the rows by what they have in some columns; nil without any.
func (t *exampleTable) groups(names []string) ([]int, error) {
	if len(names) == 0 {
		return nil, nil
	}
	keys := make([][]string, len(t.rows))
	for _, name := range names {
		k, err := t.column(name)
		if err != nil {
			return nil, fmt.Errorf("group: %w", err)
		}
		for i, row := range t.rows {
			cell := strings.TrimSpace(row[k])
			if x := number(cell); !math.IsNaN(x) {
				cell = strconv.FormatFloat(x, 'g', -1, 64) // 64 and 64.0 are one setting
			}
			keys[i] = append(keys[i], cell)
		}
	}
	seen := make(map[string]int)
	groups := make([]int, len(t.rows))
	for i, key := range keys {
		name := fmt.Sprintf("%q", key)
		if _, known := seen[name]; !known {
			seen[name] = len(seen)
		}
		groups[i] = seen[name]
	}
	return groups, nil
}
