// Package table reads tables of examples as CSV. Where changes a Table, which must not be used
// concurrently meanwhile.
package table

import (
	"bufio"
	"encoding/csv"
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

// Read reads CSV with a header line.
func Read(r io.Reader) (*Table, error) {
	c, header, err := OpenCSV(r)
	switch {
	case err == io.EOF, err == nil && len(header) == 1 && header[0] == "":
		return nil, errors.New("the file is empty")
	case err != nil:
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
