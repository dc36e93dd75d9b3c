package spool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"courier/schemas"
)

type eventLine struct {
	Subject string          `json:"subject"`
	Event   json.RawMessage `json:"event"`
}

// encodeLine returns the line for an event, including the line break.
func encodeLine(e schemas.Event) ([]byte, error) {
	body, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(eventLine{Subject: e.Subject(), Event: body})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Subject(), err)
	}
	return append(line, '\n'), nil
}

func decodeLine(line []byte) (schemas.Event, error) {
	var l eventLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	return schemas.Parse(l.Subject, l.Event)
}

// appendLine appends a line to a file of a known size, and returns the new size. If it fails, the file has
// the whole line or nothing of it, or a partial line with a line break, which readers skip.
func appendLine(f *os.File, sizeBytes int64, line []byte) (int64, error) {
	n, err := f.Write(line)
	if err == nil {
		return sizeBytes + int64(n), nil
	}
	if f.Truncate(sizeBytes) != nil {
		separator, _ := f.Write([]byte("\n"))
		sizeBytes += int64(n + separator)
	}
	return sizeBytes, err
}

// errUnreadable means that the rest of a spool file cannot be read.
var errUnreadable = errors.New("the spool file is unreadable")

// readLines calls handle for each event of a spool file, in order and once per identity, with the offset of
// the end of its line, and skip for each line that is not an event. It stops at the first error of handle. It
// returns the number of bytes that it has read.
func readLines(
	r io.Reader, handle func(e schemas.Event, end int64) error, skip func(line []byte, err error),
) (end int64, err error) {
	buffer := bufio.NewReaderSize(r, 2*schemas.MaxMessageBytes)
	seen := map[string]bool{}
	for {
		line, readErr := buffer.ReadSlice('\n')
		isEOF := errors.Is(readErr, io.EOF)
		if readErr != nil && !isEOF && !errors.Is(readErr, bufio.ErrBufferFull) {
			return end, fmt.Errorf("%w: %w", errUnreadable, readErr)
		}
		end += int64(len(line))

		if line = bytes.TrimSpace(line); len(line) > 0 {
			e, err := decodeLine(line)
			if err != nil {
				skip(line, err)
			} else if !seen[e.ID()] {
				seen[e.ID()] = true
				if err := handle(e, end); err != nil {
					return end, err
				}
			}
		}
		if isEOF {
			return end, nil
		}
	}
}

const maxExcerptBytes = 160

func logSkipped(log *slog.Logger) func(line []byte, err error) {
	return func(line []byte, err error) {
		excerpt := string(line[:min(len(line), maxExcerptBytes)])
		log.Warn("unreadable spool line skipped", "line", excerpt, "bytes", len(line), "error", err)
	}
}
