package importer

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	tables "courier/regress/table"
)

// csv reads a table with a header.
func (t *table) csv(in *bufio.Reader) error {
	c, header, err := tables.OpenCSV(in)
	var wrong *csv.ParseError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &wrong) {
		return err
	}
	if err != nil || len(header) < 2 {
		problem := "want a header of at least two columns, separated by commas, semicolons, tabs or bars (sacct" +
			" --parsable2)"
		if errors.Is(err, io.EOF) {
			problem = "the file is empty; " + problem
		}
		t.unreadable(problem)
		return nil
	}
	count := map[string]int{}
	for _, column := range header {
		count[column]++
	}
	for i, column := range header {
		if count[column] > 1 && column != "" { // such as of training and of validation: neither is taken
			header[i] = fmt.Sprintf("column %d", i+1)
		}
	}
	t.have, t.comma = header, c.Comma
	for {
		cells, err := c.Read()
		row := record{cells: make(map[string]string, len(cells))}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &wrong):
			row.line, row.broken = wrong.Line, refuse(ReasonUnreadable, "", "%s", wrong.Err)
		case err != nil:
			return err
		default:
			row.line, _ = c.FieldPos(0)
			if n := len(header); len(cells) > n && (c.Comma == '|' || c.Comma == ' ') { // in the command of a job
				cells = append(cells[:n-1], strings.Join(cells[n-1:], string(c.Comma)))
			}
			if len(cells) != len(header) {
				row.broken = refuse(ReasonUnreadable, "", "the row has %d fields, the header %d",
					len(cells), len(header))
			}
		}
		hasValue := err != nil
		for i, text := range cells {
			text = cell(text)
			hasValue = hasValue || text != ""
			if i < len(header) {
				row.cells[header[i]] = text
			}
		}
		if hasValue { // unlike the line below the header of a table in Markdown
			t.add(row)
		}
	}
}
