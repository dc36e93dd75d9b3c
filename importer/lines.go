package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
)

// maxLine is the maximum length of a line; one line may be a whole document.
const maxLine = 16 << 20

// eachLine calls do for every line that is not blank, with its number from 1. The line is valid only
// during the call. A line above maxLine is an error.
func eachLine(in io.Reader, do func(number int, line []byte)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number := 1
	for ; lines.Scan(); number++ {
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			do(number, text)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number, err)
	}
	return nil
}

// readLines adds a row for each line of a source for which of returns one.
func (r *Reader) readLines(name string, in io.Reader, of func(number int, line []byte) (row record, isRow bool)) error {
	t := r.newTable(name, nil)
	var failed error
	err := eachLine(in, func(number int, line []byte) {
		if row, isRow := of(number, line); isRow {
			failed = cmp.Or(failed, t.add(row))
		}
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return cmp.Or(failed, t.end())
}
