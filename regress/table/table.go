// Package table reads tables of examples as CSV. Where changes a Table, which must not be used
// concurrently meanwhile.
package table

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Table is a file of examples: a name for each column, and a cell for each name in every row.
type Table struct {
	Header []string
	Rows   [][]string
}

// beginning is how much of a file decides on its separator and on its header.
const beginning = 64 << 10

// OpenCSV returns a reader of the rows below a header, and the header. The separator of cells is the comma,
// semicolon, tab or bar, or blanks if all lines have the same number of words. Lines of comments, titles and
// merged cells may stand above the header. The text is UTF-8, or UTF-16 with a byte order mark.
func OpenCSV(r io.Reader) (rows *csv.Reader, header []string, err error) {
	b := bufio.NewReaderSize(r, beginning)
	begin, err := b.Peek(beginning)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if order := byteOrder(begin); order != nil {
		if b, err = decodeUTF16(b, order); err != nil {
			return nil, nil, err
		}
		begin, _ = b.Peek(beginning) // of a text in memory
	}
	rows = newCSV(b, separatorOf(string(begin)))
	var above []string
	for range linesAbove(newCSV(bytes.NewReader(begin), rows.Comma)) {
		above, _ = rows.Read() // linesAbove has read it without an error
	}
	if header, err = rows.Read(); err != nil {
		return nil, nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
	}
	nameGroups(header, above)
	return rows, header, nil
}

// nameGroups adds the names of groups in the line above a header to the names that several columns have, such as acc
// below Training and below Validation. A merged cell has its text in its first column.
func nameGroups(header, above []string) {
	count := map[string]int{}
	for _, name := range header {
		count[name]++
	}
	group := ""
	for i, name := range header {
		if i < len(above) {
			group = cmp.Or(strings.TrimSpace(above[i]), group)
		}
		if count[name] > 1 && name != "" && group != "" {
			header[i] = group + " " + name
		}
	}
}

func newCSV(r io.Reader, separator rune) *csv.Reader {
	rows := csv.NewReader(r)
	rows.Comma, rows.FieldsPerRecord = separator, -1
	rows.LazyQuotes = separator == '|'        // no program quotes cells between bars
	rows.TrimLeadingSpace = separator != '\t' // else empty cells would vanish
	return rows
}

// byteOrder returns the order of a text in UTF-16 according to its byte order mark; nil for other texts.
func byteOrder(begin []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(begin, []byte{0xFF, 0xFE}):
		return binary.LittleEndian
	case bytes.HasPrefix(begin, []byte{0xFE, 0xFF}):
		return binary.BigEndian
	}
	return nil
}

// decodeUTF16 reads a text in UTF-16 with its byte order mark.
func decodeUTF16(r io.Reader, order binary.ByteOrder) (*bufio.Reader, error) {
	data, err := io.ReadAll(r)
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return bufio.NewReaderSize(strings.NewReader(string(utf16.Decode(units))), beginning), err
}

// maxAbove is the maximum number of lines above a header.
const maxAbove = 8

// separatorOf returns the separator of a text: the one with the highest minimum count per line, and of several
// the one with the highest maximum. Without one it is a blank if the lines have the same number of words, or more
// below the last name of the header, with which a cell of it is aligned.
func separatorOf(begin string) rune {
	lines := strings.SplitN(strings.TrimRight(begin, "\r\n"), "\n", maxAbove+2)
	lines = lines[:min(len(lines), maxAbove+1)]
	best, fewest, most := ',', -1, 0
	for _, separator := range ",;\t|" {
		least, greatest := len(begin), 0
		for _, line := range lines {
			if n := strings.Count(line, string(separator)); strings.TrimSpace(line) != "" {
				least, greatest = min(least, n), max(greatest, n)
			}
		}
		if least > fewest || least == fewest && greatest > most {
			best, fewest, most = separator, least, greatest
		}
	}
	if names := strings.Fields(lines[0]); most == 0 && len(names) > 1 && len(lines) > 1 {
		last := strings.LastIndex(lines[0], names[len(names)-1])
		hasBlanks := len(names) > 2 && slices.ContainsFunc(lines[1:], func(line string) bool { // below the last name
			return last < len(line) && line[last-1] == ' ' && len(strings.Fields(line[:last])) == len(names)-1
		})
		isOther := func(line string) bool {
			n := len(strings.Fields(line))
			return n > 0 && n != len(names) && !(n > len(names) && hasBlanks)
		}
		if !slices.ContainsFunc(lines, isOther) {
			return ' '
		}
	}
	return best
}

// linesAbove returns how many rows stand above the header, which is the first row of names that has as many
// cells as the widest of the first rows. Without one it is the first row.
func linesAbove(rows *csv.Reader) int {
	var first [][]string
	widest := 0
	for len(first) <= maxAbove {
		row, err := rows.Read()
		if err != nil {
			break
		}
		first, widest = append(first, row), max(widest, len(row))
	}
	return max(slices.IndexFunc(first, func(row []string) bool {
		return len(row) == widest && widest > 1 && areNames(row)
	}), 0)
}

// areNames reports whether cells may be those of a header: no number, and none between others is empty.
func areNames(row []string) bool {
	for i, text := range row {
		text = strings.TrimSpace(text)
		isInside := i > 0 && i < len(row)-1
		if text == "" && isInside || !math.IsNaN(Number(text)) {
			return false
		}
	}
	return true
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
	c.FieldsPerRecord = len(header)
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
