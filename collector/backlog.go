package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

const (
	// maxBacklog is how many samples wait in memory where no disk takes them: ten
	// minutes at the default interval.
	maxBacklog = 300

	// Samples on disk are in files of maxSegmentBytes, maxSegments of them: some
	// 90,000 samples, two days at the default interval.
	maxSegmentBytes = 1 << 20
	maxSegments     = 64

	// mostTaken is how many samples are published at once where so many wait.
	mostTaken = 100
)

// backlog is the samples that wait for the event log, oldest first: what could
// not be published at once is on disk, or in memory where there is no disk for
// it. Where too many wait the oldest give way, because advice needs the newest.
// Files outlive the process; power loss may cost the last of them.
//
//	add ──► memory ──► bus
//	          └ away ──► segment … segment ──► bus, before what is in memory
type backlog struct {
	dir     string // "": memory only
	log     *slog.Logger
	metrics *metrics

	memory   []*schemas.Sample
	segments []*segment // all older than memory
	file     *os.File   // end of the last segment; nil: the next sample begins another
	lock     *os.File
	failing  bool              // the disk took nothing last time
	left     map[string]uint64 // of what an earlier process left, by boot: the highest number

	segmentBytes int64 // at most, in one of at most so many
	mostSegments int
	some         int // most samples that are handed out at once
}

// openBacklog takes up what an earlier process left in the folder. Without one,
// or where another process uses it, samples wait in memory only.
func openBacklog(dir string, log *slog.Logger, m *metrics) *backlog {
	b := &backlog{dir: dir, log: log, metrics: m, segmentBytes: maxSegmentBytes, mostSegments: maxSegments, some: mostTaken, left: map[string]uint64{}}
	if dir == "" {
		return b
	}
	if err := b.open(); err != nil {
		log.Warn("node samples wait in memory only", "kept_samples", maxBacklog, "error", err)
		b.close()
		b.dir, b.segments = "", nil
	}
	return b
}

func (b *backlog) open() (err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if b.lock, err = os.OpenFile(filepath.Join(b.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := lock(b.lock); err != nil {
		return fmt.Errorf("lock %s: %w", b.dir, err)
	}
	names, err := filepath.Glob(filepath.Join(b.dir, "*"+segmentSuffix))
	if err != nil {
		return err
	}
	slices.Sort(names) // numbers have one length
	for _, name := range names {
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), segmentSuffix), 10, 64)
		if err != nil {
			continue // not ours
		}
		s := &segment{number: number}
		if err := s.each(b.dir, 1, func(one []*schemas.Sample) error {
			e := one[0]
			if s.samples++; s.samples == 1 {
				s.oldest = e.At
			}
			b.left[e.BootID] = max(b.left[e.BootID], e.Number)
			return nil
		}, nil); err != nil && !errors.Is(err, errUnreadable) { // replay tells what is lost
			return err
		}
		s.bytes, s.taken = s.taken, 0
		b.segments = append(b.segments, s)
	}
	return nil
}

// newest returns the highest number of a sample of this boot that an earlier process left.
func (b *backlog) newest(boot string) uint64 { return b.left[boot] }

// add takes a sample that is newer than all others.
func (b *backlog) add(s *schemas.Sample) {
	b.memory = append(b.memory, s)
	if extra := len(b.memory) - maxBacklog; extra > 0 {
		b.memory = b.memory[extra:]
		b.metrics.dropped.Add(float64(extra))
	}
}

// taker publishes some samples, oldest first.
type taker func(context.Context, []*schemas.Sample) error

// publish hands out samples, oldest first, until all are taken, some are refused,
// or the time is over; then what is left goes to disk. So does what there is of less
// than least.
func (b *backlog) publish(ctx context.Context, least int, until time.Time, take taker) (err error) {
	if samples, _, _ := b.waiting(); samples >= least {
		if len(b.segments) > 0 {
			b.spill() // what waits goes together
		}
		err = b.replay(ctx, until, take)
		for err == nil && len(b.segments) == 0 && len(b.memory) > 0 && time.Now().Before(until) {
			some := b.memory[:min(len(b.memory), b.some)]
			if err = take(ctx, some); err == nil {
				b.memory = b.memory[len(some):]
			}
		}
	}
	b.spill()
	b.metrics.waiting(b.waiting())
	return err
}

// errPause ends a replay that goes on later.
var errPause = errors.New("the time for this is over")

// replay publishes what is on disk.
func (b *backlog) replay(ctx context.Context, until time.Time, take taker) error {
	for len(b.segments) > 0 {
		s := b.segments[0]
		err := s.each(b.dir, b.some, func(some []*schemas.Sample) error {
			s.oldest = some[0].At
			if !time.Now().Before(until) {
				return errPause
			}
			if err := take(ctx, some); err != nil {
				return err
			}
			s.samples -= len(some)
			return nil
		}, func(line []byte, err error) {
			b.log.Warn("line of the spool is not a sample", "line", quotable(line), "error", err)
		})
		if errors.Is(err, errPause) {
			return nil
		}
		if err != nil && !errors.Is(err, errUnreadable) {
			return err
		}
		if err != nil {
			b.metrics.dropped.Add(float64(s.samples))
			b.log.Warn("samples on disk are lost", "samples", s.samples, "error", err)
		}
		b.drop()
	}
	return nil
}

// drop removes the oldest segment.
func (b *backlog) drop() {
	s := b.segments[0]
	if b.segments = b.segments[1:]; len(b.segments) == 0 {
		b.closeFile()
	}
	if err := os.Remove(s.path(b.dir)); err != nil {
		b.log.Warn("published samples stay on disk", "error", err)
	}
}

// spill moves what waits in memory to disk. What the disk does not take stays.
func (b *backlog) spill() {
	if b.dir == "" {
		return
	}
	for len(b.memory) > 0 {
		err := b.write(b.memory[0])
		if err != nil && !b.failing {
			b.log.Warn("node samples wait in memory only", "kept_samples", maxBacklog, "error", err)
		}
		if b.failing = err != nil; b.failing {
			b.metrics.spoolFailures.Inc()
			return
		}
		b.memory = b.memory[1:]
	}
}

// write appends a sample to the last segment, whole or not at all.
func (b *backlog) write(s *schemas.Sample) error {
	line, err := encodeSpooled(s)
	if err != nil {
		return err
	}
	if b.file == nil || b.last().bytes+int64(len(line)) > b.segmentBytes {
		if err := b.begin(); err != nil {
			return err
		}
	}
	last := b.last()
	if _, err := b.file.Write(line); err != nil {
		if torn := b.file.Truncate(last.bytes); torn != nil {
			b.closeFile() // the next sample begins another
		}
		return fmt.Errorf("keep %s: %w", s.EventID, err)
	}
	if last.samples == 0 {
		last.oldest = s.At
	}
	last.bytes, last.samples = last.bytes+int64(len(line)), last.samples+1
	return nil
}

func (b *backlog) last() *segment { return b.segments[len(b.segments)-1] }

// begin makes the next segment. The oldest gives way where there are too many.
func (b *backlog) begin() error {
	s := &segment{number: 1}
	if len(b.segments) > 0 {
		s.number = b.last().number + 1
	}
	f, err := os.OpenFile(s.path(b.dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("keep samples: %w", err)
	}
	b.closeFile()
	b.file, b.segments = f, append(b.segments, s)
	if len(b.segments) > b.mostSegments {
		b.metrics.dropped.Add(float64(b.segments[0].samples))
		b.drop()
	}
	return nil
}

// waiting returns how many samples wait, since when, and the bytes on disk.
func (b *backlog) waiting() (samples int, oldest time.Time, bytes int64) {
	samples = len(b.memory)
	if samples > 0 {
		oldest = b.memory[0].At
	}
	for i := len(b.segments) - 1; i >= 0; i-- {
		s := b.segments[i]
		samples, bytes = samples+s.samples, bytes+s.bytes
		if s.samples > 0 {
			oldest = s.oldest
		}
	}
	return samples, oldest, bytes
}

func (b *backlog) closeFile() {
	if b.file != nil {
		_ = b.file.Close() // what it took was told at once
		b.file = nil
	}
}

// close leaves what is on disk to the next process.
func (b *backlog) close() {
	b.closeFile()
	if b.lock != nil {
		_ = b.lock.Close() // it was never written
	}
}
