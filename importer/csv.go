package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csv reads a table with a header.
func (r *Reader) csv(name string, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	begin, err := b.Peek(b.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	c := csv.NewReader(b)
	c.Comma, c.FieldsPerRecord, c.TrimLeadingSpace = separator(begin), -1, true
	header, err := c.Read()
	if err != nil || len(header) < 2 {
		problem := "want a header of at least two columns, separated by commas, semicolons or tabs"
		if errors.Is(err, io.EOF) {
			problem = "the file is empty; " + problem
		}
		r.found.Unreadable++
		r.refuse(Place{File: name, Line: 1}, refuse(ReasonUnreadable, "", "%s", problem))
		return nil
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	t := r.newTable(name, header)
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return t.end()
		}
		row := record{cells: make(map[string]string, len(cells))}
		var wrong *csv.ParseError
		switch {
		case errors.As(err, &wrong):
			row.line, row.broken = wrong.Line, refuse(ReasonUnreadable, "", "%s", wrong.Err)
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		default:
			row.line, _ = c.FieldPos(0)
			if len(cells) != len(header) {
				row.broken = refuse(ReasonUnreadable, "", "the row has %d fields, the header %d",
					len(cells), len(header))
			}
		}
		for i, text := range cells[:min(len(cells), len(header))] {
			row.cells[header[i]] = cell(text)
		}
		if err := t.add(row); err != nil {
			return err
		}
	}
}

// separator returns the separator that occurs most often in the first line.
func separator(begin []byte) rune {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}
