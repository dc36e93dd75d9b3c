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
	"path/filepath"
	"time"

	"courier/schemas"
)

const segmentSuffix = ".samples"

type segment struct {
	number         uint64
	sizeBytes      int64
	publishedBytes int64     // offset of the first unpublished sample
	unpublished    int       // number of unpublished samples
	oldest         time.Time // timestamp of the first unpublished sample
}

func (s *segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", s.number, segmentSuffix))
}

// read calls handle with the unpublished samples, in batches of at most batchSize, and advances
// publishedBytes after each batch. It stops at the first error of handle. A line that is not a
// sample, for example one that was cut off by a crash, goes to skip.
func (s *segment) read(
	dir string,
	batchSize int,
	handle func([]*schemas.Sample) error,
	skip func(line []byte, err error),
) error {
	f, err := os.OpenFile(s.path(dir), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer func() { _ = f.Close() }() // it was only read

	start := s.publishedBytes
	var batch []*schemas.Sample
	flush := func(end int64) error {
		if len(batch) > 0 {
			if err := handle(batch); err != nil {
				return err
			}
		}
		batch, s.publishedBytes = nil, start+end
		return nil
	}
	add := func(e schemas.Event, end int64) error {
		sample, isSample := e.(*schemas.Sample)
		if !isSample {
			skip([]byte(e.ID()), errors.New("it is not a sample"))
			return nil
		}
		if batch = append(batch, sample); len(batch) < batchSize {
			return nil
		}
		return flush(end)
	}
	end, err := readLines(io.NewSectionReader(f, start, 1<<62), add, skip)
	if err != nil {
		return err
	}
	return flush(end)
}

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
