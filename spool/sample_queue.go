package spool

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
	// MaxSampleBatch is the maximum number of samples that SampleQueue.Publish passes to its
	// callback at once.
	MaxSampleBatch = 100

	// maxSamplesInMemory limits the samples in memory if no disk is available. It is ten
	// minutes at the default sampling interval.
	maxSamplesInMemory = 300

	// The segments on disk hold about 90,000 samples, which is two days at the default
	// sampling interval.
	maxSegmentBytes = 1 << 20
	maxSegments     = 64
)

// SampleQueue holds the samples of a node that are not published yet, oldest first. Samples
// that cannot be published at once go to disk, or stay in memory if no disk is available. A full
// queue drops its oldest samples. It is not safe for concurrent use.
//
//	Add ──► memory ──► bus
//	          └ NATS unreachable ──► segment … segment ──► bus, before the samples in memory
type SampleQueue struct {
	dir string // empty: memory only
	log *slog.Logger

	memory     []*schemas.Sample
	segments   []*segment // all of them older than memory
	file       *os.File   // the last segment, open for append; nil: the next sample starts one
	lockFile   *os.File
	diskFailed bool              // the last write to disk failed
	highest    map[string]uint64 // highest number by boot ID that an earlier process left
	stats      SampleStats       // only Dropped and WriteFailures

	// Limits, which tests lower.
	maxSegmentBytes int64
	maxSegments     int
	batchSize       int
}

// SampleStats describes a SampleQueue.
type SampleStats struct {
	Samples       int       // waiting in memory and on disk
	Oldest        time.Time // timestamp of the oldest waiting sample; zero if none waits
	Bytes         int64     // size of the files
	Dropped       int       // samples dropped since the queue was opened
	WriteFailures int       // failed writes to disk since the queue was opened
}

// OpenSamples opens the queue in a directory, including the samples that an earlier process left
// there. If dir is empty or in use by another process, the queue is in memory only.
func OpenSamples(dir string, log *slog.Logger) *SampleQueue {
	q := &SampleQueue{
		dir:             dir,
		log:             log,
		maxSegmentBytes: maxSegmentBytes,
		maxSegments:     maxSegments,
		batchSize:       MaxSampleBatch,
		highest:         map[string]uint64{},
	}
	if dir == "" {
		return q
	}

	if err := q.open(); err != nil {
		q.warnMemoryOnly(err)
		q.Close()
		q.dir, q.segments = "", nil
	}
	return q
}

func (q *SampleQueue) warnMemoryOnly(err error) {
	q.log.Warn("node samples are kept in memory only", "max_samples", maxSamplesInMemory, "error", err)
}

func (q *SampleQueue) open() (err error) {
	if err := makeDir(q.dir); err != nil {
		return err
	}
	lockPath := filepath.Join(q.dir, "lock")
	if q.lockFile, err = os.OpenFile(lockPath, os.O_RDWR|os.O_CREATE|noFollow, 0o600); err != nil {
		return err
	}
	if err := lock(q.lockFile); err != nil {
		return fmt.Errorf("lock %s: %w", q.dir, err)
	}

	names, err := filepath.Glob(filepath.Join(q.dir, "*"+segmentSuffix))
	if err != nil {
		return err
	}
	slices.Sort(names) // the numbers in the names have leading zeros
	for _, name := range names {
		text := strings.TrimSuffix(filepath.Base(name), segmentSuffix)
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			continue // not a segment
		}
		if err := q.openSegment(number); err != nil {
			return err
		}
	}
	return nil
}

func (q *SampleQueue) openSegment(number uint64) error {
	s := &segment{number: number}
	count := func(batch []*schemas.Sample) error {
		sample := batch[0]
		if s.unpublished++; s.unpublished == 1 {
			s.oldest = sample.At
		}
		q.highest[sample.BootID] = max(q.highest[sample.BootID], sample.Number)
		return nil
	}
	skip := func([]byte, error) {}
	if err := s.read(q.dir, 1, count, skip); err != nil && !errors.Is(err, errUnreadable) {
		return err // replay logs an unreadable segment, and unreadable lines
	}
	s.sizeBytes, s.publishedBytes = s.publishedBytes, 0
	q.segments = append(q.segments, s)
	return nil
}

// BelongTo records the cluster of the samples. It drops the samples on disk of a different cluster.
func (q *SampleQueue) BelongTo(cluster string) error {
	if q.dir == "" {
		return nil
	}
	path := filepath.Join(q.dir, "cluster")
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) || string(before) == cluster {
		return err
	}
	if len(before) > 0 && len(q.segments) > 0 {
		q.log.Warn("samples of a different cluster dropped", "samples", q.Stats().Samples-len(q.memory))
		for len(q.segments) > 0 {
			q.dropOldest()
		}
	}
	return os.WriteFile(path, []byte(cluster), 0o600)
}

// HighestNumber returns the highest number of the samples of a boot that an earlier process
// left, or 0 if there are none.
func (q *SampleQueue) HighestNumber(bootID string) uint64 { return q.highest[bootID] }

// Add adds a sample, which is newer than all others.
func (q *SampleQueue) Add(s *schemas.Sample) {
	q.memory = append(q.memory, s)
	if excess := len(q.memory) - maxSamplesInMemory; excess > 0 {
		q.memory = q.memory[excess:]
		q.stats.Dropped += excess
	}
}

// SamplePublisher publishes a batch of samples, oldest first. It publishes all of them or
// returns an error.
type SamplePublisher func(context.Context, []*schemas.Sample) error

// Publish publishes samples, oldest first, until the queue is empty, an error occurs, or the
// deadline has passed. It publishes nothing if fewer than minimum samples wait. Samples that
// still wait go to disk.
func (q *SampleQueue) Publish(
	ctx context.Context, minimum int, deadline time.Time, publish SamplePublisher,
) (err error) {
	if q.Stats().Samples >= minimum {
		if len(q.segments) > 0 {
			q.spill() // so that all samples are published in full batches
		}
		err = q.replay(ctx, deadline, publish)
		for err == nil && len(q.segments) == 0 && len(q.memory) > 0 && time.Now().Before(deadline) {
			batch := q.memory[:min(len(q.memory), q.batchSize)]
			if err = publish(ctx, batch); err == nil {
				q.memory = q.memory[len(batch):]
			}
		}
	}
	q.spill()
	return err
}

var errDeadline = errors.New("the deadline has passed")

func (q *SampleQueue) replay(ctx context.Context, deadline time.Time, publish SamplePublisher) error {
	for len(q.segments) > 0 {
		s := q.segments[0]
		publishBatch := func(batch []*schemas.Sample) error {
			s.oldest = batch[0].At
			if !time.Now().Before(deadline) {
				return errDeadline
			}
			if err := publish(ctx, batch); err != nil {
				return err
			}
			s.unpublished -= len(batch)
			return nil
		}

		err := s.read(q.dir, q.batchSize, publishBatch, logSkipped(q.log))
		switch {
		case errors.Is(err, errDeadline):
			return nil
		case errors.Is(err, errUnreadable):
			q.log.Warn("unreadable samples lost", "samples", s.unpublished, "error", err)
		case err != nil:
			return err
		}
		q.dropOldest()
	}
	return nil
}

// dropOldest removes the oldest segment, and counts its unpublished samples as dropped.
func (q *SampleQueue) dropOldest() {
	s := q.segments[0]
	q.stats.Dropped += s.unpublished
	if q.segments = q.segments[1:]; len(q.segments) == 0 {
		q.closeFile()
	}
	if err := os.Remove(s.path(q.dir)); err != nil {
		q.log.Warn("file of published samples not removed", "error", err)
	}
}

// spill moves the samples in memory to disk. Samples that cannot be written stay in memory.
func (q *SampleQueue) spill() {
	if q.dir == "" {
		return
	}
	for len(q.memory) > 0 {
		err := q.write(q.memory[0])
		if err != nil && !q.diskFailed {
			q.warnMemoryOnly(err)
		}
		if q.diskFailed = err != nil; q.diskFailed {
			q.stats.WriteFailures++
			return
		}
		q.memory = q.memory[1:]
	}
}

// write appends a sample to the last segment, completely or not at all.
func (q *SampleQueue) write(s *schemas.Sample) error {
	line, err := encodeLine(s)
	if err != nil {
		return err
	}
	if q.file == nil || q.last().sizeBytes+int64(len(line)) > q.maxSegmentBytes {
		if err := q.startSegment(); err != nil {
			return err
		}
	}

	last := q.last()
	if last.sizeBytes, err = appendLine(q.file, last.sizeBytes, line); err != nil {
		return fmt.Errorf("write sample %s: %w", s.EventID, err)
	}
	if last.unpublished == 0 {
		last.oldest = s.At
	}
	last.unpublished++
	return nil
}

func (q *SampleQueue) last() *segment { return q.segments[len(q.segments)-1] }

func (q *SampleQueue) startSegment() error {
	s := &segment{number: 1}
	if len(q.segments) > 0 {
		s.number = q.last().number + 1
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND
	f, err := os.OpenFile(s.path(q.dir), flags, 0o600)
	if err != nil {
		return fmt.Errorf("create a file for samples: %w", err)
	}
	q.closeFile()
	q.file, q.segments = f, append(q.segments, s)

	if len(q.segments) > q.maxSegments {
		q.dropOldest()
	}
	return nil
}

// Stats describes the queue.
func (q *SampleQueue) Stats() SampleStats {
	stats := q.stats
	stats.Samples = len(q.memory)
	if len(q.memory) > 0 {
		stats.Oldest = q.memory[0].At
	}
	for _, s := range slices.Backward(q.segments) {
		stats.Samples += s.unpublished
		stats.Bytes += s.sizeBytes
		if s.unpublished > 0 {
			stats.Oldest = s.oldest
		}
	}
	return stats
}

func (q *SampleQueue) closeFile() {
	if q.file != nil {
		_ = q.file.Close() // each write has reported its own error
		q.file = nil
	}
}

// Close releases the directory. Samples on disk stay for the next process.
func (q *SampleQueue) Close() {
	q.closeFile()
	if q.lockFile != nil {
		_ = q.lockFile.Close() // nothing was written to it
	}
}
