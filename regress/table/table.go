// Package table reads tables of examples, CSV or JSON lines. Where changes a Table, which must not be
// used concurrently meanwhile.
package table

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
)

// Table is a file of examples: a name for each column, and a cell for each name in every row.
type Table struct {
	Header []string
	Rows   [][]string
}

// Read reads CSV with a header line, or JSON lines: an object per line, with numbers, strings,
// booleans or null as values.
func Read(r io.Reader) (*Table, error) {
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

func readCSV(r io.Reader) (*Table, error) {
	c := csv.NewReader(r)
	header, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	t := &Table{}
	seen := make(map[string]bool, len(header))
	for i, name := range header {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] {
			return nil, fmt.Errorf("header: column %d is named %q, want a name of its own", i+1,
				name)
		}
		seen[name] = true
		t.Header = append(t.Header, name)
	}
	for {
		row, err := c.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
}

// A table of JSON lines with more than smallTable cells must have a value in one of maxEmpty cells,
// so that memory stays within a multiple of the size of the file.
const smallTable, maxEmpty = 1 << 20, 32

// readJSONLines orders the columns by the first appearance of their fields.
func readJSONLines(r io.Reader) (*Table, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	t := &Table{}
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
		t.Rows = append(t.Rows, cells)
		for _, cell := range cells {
			if cell != "" {
				filled++
			}
		}
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

// readObject reads the next example; it returns io.EOF after the last one.
func readObject(d *json.Decoder, at map[string]int, t *Table) ([]string, error) {
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

func readFields(
	d *json.Decoder, open json.Token, at map[string]int, t *Table,
) ([]string, error) {
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
			k = len(t.Header)
			at[name] = k
			t.Header = append(t.Header, name)
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
