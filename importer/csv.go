package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	tables "courier/regress/table"
)

// csv reads a table with a header.
func (r *Reader) csv(name string, in io.Reader) error {
	c, header, err := tables.OpenCSV(in)
	var wrong *csv.ParseError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &wrong) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err != nil || len(header) < 2 {
		problem := "want a header of at least two columns, separated by commas, semicolons or tabs"
		if errors.Is(err, io.EOF) {
			problem = "the file is empty; " + problem
		}
		r.found.Unreadable++
		r.refuse(Place{File: name, Line: 1}, refuse(ReasonUnreadable, "", "%s", problem))
		return nil
	}
	c.FieldsPerRecord = -1
	t := r.newTable(name, header)
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return t.end()
		}
		row := record{cells: make(map[string]string, len(cells))}
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
