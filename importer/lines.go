package importer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the maximum length of a line; one line may be a whole document.
const maxLine = 16 << 20

// eachLine calls do for every line that is not blank, with its number from 1. The line is valid
// only during the call; it is nil if it exceeds maxLine.
func eachLine(in io.Reader, do func(number int, line []byte)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for number, long := 1, false; ; {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if text := bytes.TrimSpace(line); long {
			do(number, nil)
		} else if len(text) > 0 {
			do(number, text)
		}
		if err != nil {
			return nil
		}
		number, long, line = number+1, false, line[:0]
	}
}
