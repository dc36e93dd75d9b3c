package spool

import (
	"errors"
	"fmt"
	"io"
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
