package importer

import (
	"bufio"
	"bytes"
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
