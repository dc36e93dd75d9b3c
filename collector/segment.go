package collector

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

// segmentSuffix ends the names of files of samples.
const segmentSuffix = ".samples"

// segment is one file of samples.
type segment struct {
	number  uint64
	bytes   int64
	taken   int64     // that are published
	samples int       // that are not
	oldest  time.Time // of those
}

func (s *segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", s.number, segmentSuffix))
}

// errUnreadable means that a segment cannot be read on.
var errUnreadable = errors.New("cannot be read")

// each calls take for the samples after those that were taken, some at a time. What
// is no sample, as a line torn by a crash, goes to torn. An error of take ends it.
func (s *segment) each(dir string, some int, take func([]*schemas.Sample) error, torn func(line []byte, err error)) error {
	f, err := os.Open(s.path(dir))
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(io.NewSectionReader(f, s.taken, 1<<62))
	lines.Buffer(nil, 2*schemas.MaxMessageBytes)
	var samples []*schemas.Sample
	length := int64(0)
	hand := func() error {
		if len(samples) > 0 {
			if err := take(samples); err != nil {
				return err
			}
		}
		s.taken += length
		samples, length = nil, 0
		return nil
	}
	for lines.Scan() {
		line := lines.Bytes()
		length += int64(len(line)) + 1
		e, err := decodeSpooled(bytes.TrimSpace(line))
		sample, ok := e.(*schemas.Sample)
		if err == nil && ok {
			samples = append(samples, sample)
		} else if torn != nil {
			torn(line, err)
		}
		if len(samples) == some {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	if err := hand(); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %s: %w", errUnreadable, s.path(dir), err)
	}
	return nil
}
