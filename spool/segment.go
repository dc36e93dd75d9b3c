package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"courier/schemas"
)

const segmentSuffix = ".samples"

// segment is one file of samples.
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

// errUnreadable means that the rest of a segment cannot be read.
var errUnreadable = errors.New("spool segment is unreadable")

// read calls handle with the unpublished samples, in batches of at most batchSize, and advances
// publishedBytes after each batch. It stops at the first error of handle. A line that is not a
// sample, for example one that was cut off by a crash, goes to skip, which may be nil.
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

	lines := bufio.NewScanner(io.NewSectionReader(f, s.publishedBytes, 1<<62))
	lines.Buffer(nil, 2*schemas.MaxMessageBytes)
	var batch []*schemas.Sample
	batchBytes := int64(0)
	flush := func() error {
		if len(batch) > 0 {
			if err := handle(batch); err != nil {
				return err
			}
		}
		s.publishedBytes += batchBytes
		batch, batchBytes = nil, 0
		return nil
	}

	for lines.Scan() {
		line := lines.Bytes()
		batchBytes += int64(len(line)) + 1
		e, err := decodeLine(bytes.TrimSpace(line))
		sample, isSample := e.(*schemas.Sample)
		if err == nil && isSample {
			batch = append(batch, sample)
		} else if skip != nil {
			skip(line, err)
		}
		if len(batch) == batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %s: %w", errUnreadable, s.path(dir), err)
	}
	return nil
}
