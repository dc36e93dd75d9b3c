package spool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// ErrFull means that the spool file of a run has reached its maximum size.
var ErrFull = errors.New("spool file is full")

const maxFileBytes = 64 << 20

const fileSuffix = ".jsonl"

// DefaultDir returns the default directory for events that could not be published. It is in
// the user's cache directory, or in the directory for temporary files if there is no cache.
func DefaultDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "courier", "spool")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("courier-spool-%d", os.Getuid()))
}

// runFile is the spool file of one run. It is created with the first event, and stays locked
// until the run ends. It outlives the process if it still holds unpublished events.
type runFile struct {
	base    string // the spool directory
	path    string
	cluster string // that its events belong to; empty: to the first one that is reached at its address

	mu             sync.Mutex // held during a write, never during a publish
	file           *os.File
	sizeBytes      int64
	publishedBytes int64 // offset of the first unpublished event
	unpublished    int   // number of unpublished events
	oldest         time.Time
}

func newRunFile(dir, address, job string, run uint32) *runFile {
	name := fmt.Sprintf("%s-%d%s", job, run, fileSuffix)
	return &runFile{base: dir, path: filepath.Join(dir, addressDir(address), name)}
}

// Prefixes of subdirectories: with the events of one cluster, and with the events for the cluster at one
// address, whose identity is not known yet.
const (
	clusterPrefix = "cluster-"
	addressPrefix = "address-"
)

// addressDir names the subdirectory for an address, which may have any character and length; "" for none.
func addressDir(address string) string {
	if address == "" {
		return ""
	}
	return fmt.Sprintf("%s%x", addressPrefix, sha256.Sum256([]byte(address)))[:len(addressPrefix)+16]
}

func removeFile(path string) error {
	err := os.Remove(path)
	name := filepath.Base(filepath.Dir(path))
	if strings.HasPrefix(name, clusterPrefix) || strings.HasPrefix(name, addressPrefix) {
		_ = os.Remove(filepath.Dir(path)) // it fails while the directory is not empty
	}
	return err
}

// belongTo moves the file to the directory of a cluster. Windows does not rename an open file: it stays in
// its directory then, as if its cluster were unknown to later processes.
func (f *runFile) belongTo(cluster string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = cluster
	path := filepath.Join(f.base, clusterPrefix+cluster, filepath.Base(f.path))
	if f.file != nil {
		if err := makeDir(filepath.Dir(path)); err != nil {
			return fmt.Errorf("create the spool directory: %w", err)
		}
		if err := os.Rename(f.path, path); err != nil {
			return nil
		}
		_ = os.Remove(filepath.Dir(f.path)) // it fails unless it is the empty directory of an address
	}
	f.path = path
	return nil
}

func (f *runFile) location() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path
}

// append writes an event to the end of the file. If the file is full, it accepts only the end
// of the job and returns ErrFull for every other event.
func (f *runFile) append(e schemas.Event) error {
	line, err := encodeLine(e)
	if err != nil {
		return err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(); err != nil {
		return err
	}

	_, isEnd := e.(*schemas.Ended)
	if !isEnd && f.sizeBytes+int64(len(line)) > maxFileBytes {
		return fmt.Errorf("write %s to %s: %w", e.Subject(), f.path, ErrFull)
	}

	if f.sizeBytes, err = appendLine(f.file, f.sizeBytes, line); err != nil {
		return fmt.Errorf("write %s to the spool: %w", e.Subject(), err)
	}
	if f.unpublished++; f.unpublished == 1 {
		f.oldest = e.Stamped().At
	}
	return nil
}

// open creates and locks the file on the first call. The caller holds the mutex.
func (f *runFile) open() error {
	if f.file != nil {
		return nil
	}
	file, err := f.create()
	if errors.Is(err, os.ErrNotExist) { // another process has just removed the empty directory
		file, err = f.create()
	}
	if err != nil {
		return fmt.Errorf("open the spool file: %w", err)
	}
	if err := lock(file); err != nil {
		return errors.Join(fmt.Errorf("lock the spool file %s: %w", f.path, err), file.Close())
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("open the spool file: %w", err), file.Close())
	}

	f.file, f.sizeBytes = file, info.Size()
	if f.sizeBytes == 0 {
		return nil
	}

	// An earlier process left events, and perhaps a partial line.
	n, err := file.WriteString("\n")
	f.sizeBytes, f.unpublished = f.sizeBytes+int64(n), 1
	return err
}

// create opens the file, and creates it and its directory if they do not exist.
func (f *runFile) create() (*os.File, error) {
	if err := makeDir(filepath.Dir(f.path)); err != nil {
		return nil, err
	}
	return os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
}

func (f *runFile) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unpublished
}

// waitingSince returns the timestamp of the first event that was written since all were published;
// zero if none waits.
func (f *runFile) waitingSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unpublished == 0 {
		return time.Time{}
	}
	return f.oldest
}

// replay publishes the unpublished events in order, and empties the file after the last one.
// It stops at the first error. The next call may publish some events again, which NATS drops
// by their message IDs. It returns the number of published events. Only one goroutine may call replay.
func (f *runFile) replay(ctx context.Context, b *bus.Bus, log *slog.Logger) (published int, err error) {
	log = log.With("spool", f.location())
	for {
		f.mu.Lock()
		from, until, events := f.publishedBytes, f.sizeBytes, f.unpublished
		f.mu.Unlock()
		if events == 0 {
			return published, nil
		}
		section := io.NewSectionReader(f.file, from, until-from)
		n, done, err := publishLines(ctx, b, section, log)
		published += n
		if err != nil {
			return published, errors.Join(err, f.markPublished(from+done, min(n, events-1)))
		}
		if err := f.markPublished(until, events); err != nil {
			return published, err
		}
	}
}

func (f *runFile) markPublished(until int64, events int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.advance(until, events)
}

// drop removes all events, and returns the number of those that were not published.
func (f *runFile) drop() (events int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events = f.unpublished
	return events, f.advance(f.sizeBytes, events)
}

// advance marks events up to an offset as published, and empties the file if these are all. The
// caller holds the mutex.
func (f *runFile) advance(until int64, events int) error {
	f.publishedBytes, f.unpublished = until, f.unpublished-events
	if f.publishedBytes < f.sizeBytes {
		return nil
	}
	if err := f.file.Truncate(0); err != nil {
		return fmt.Errorf("empty the spool file: %w", err)
	}
	f.sizeBytes, f.publishedBytes = 0, 0
	return nil
}

// close unlocks the file, and removes it if every event is published.
func (f *runFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	if err == nil && f.unpublished == 0 {
		err = removeFile(f.path)
	}
	return err
}

const maxForeignAge = 30 * 24 * time.Hour

// Replay publishes the events that earlier runs left in a directory, and removes the files
// that are completely published. Events that were spooled for a different cluster, or for one at
// another address, stay in the directory for maxForeignAge. The events of each run are published in
// order and with their original timestamps. Files of running jobs are skipped. Replay returns the
// number of published events, including duplicates that NATS dropped.
func Replay(ctx context.Context, dir string, b *bus.Bus, log *slog.Logger) (int, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err := makeDir(dir); err != nil {
		return 0, fmt.Errorf("open the spool directory: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+fileSuffix))
	if err != nil {
		return 0, fmt.Errorf("list the spool directory %s: %w", dir, err)
	}
	inDirs, err := filepath.Glob(filepath.Join(dir, "*-*", "*"+fileSuffix))
	if err != nil {
		return 0, fmt.Errorf("list the spool directory %s: %w", dir, err)
	}
	if len(inDirs) > 0 {
		cluster, err := b.ClusterID(ctx)
		if err != nil {
			return 0, err
		}
		for _, path := range inDirs {
			name := filepath.Base(filepath.Dir(path))
			if name == clusterPrefix+cluster || name == addressDir(b.Address()) {
				paths = append(paths, path)
			} else {
				removeOld(path, log)
			}
		}
	}

	published := 0
	var failures []error
	for _, path := range paths {
		n, err := replayFile(ctx, path, b, log)
		published += n
		if err == nil {
			continue
		}
		failures = append(failures, fmt.Errorf("replay %s: %w", path, err))
		if ctx.Err() != nil || errors.Is(err, schemas.ErrUnavailable) {
			break // the remaining files would fail for the same reason
		}
	}
	return published, errors.Join(failures...)
}

func removeOld(path string, log *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) < maxForeignAge {
		return
	}
	err = removeFile(path)
	log.Warn("expired events of a different cluster removed", "spool", path, "bytes", info.Size(), "error", err)
}

func replayFile(ctx context.Context, path string, b *bus.Bus, log *slog.Logger) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // another process has replayed and removed it
	}
	if err != nil {
		return 0, err
	}
	if lock(f) != nil {
		return 0, f.Close() // its run is still alive
	}

	n, _, err := publishLines(ctx, b, f, log.With("spool", path))
	if err == nil {
		err = f.Truncate(0) // a process that has already opened the file finds it empty
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return n, err
	}

	if n > 0 {
		log.Info("spool replayed", "path", path, "events", n)
	}
	return n, removeFile(path)
}

// publishLines publishes the events of a spool file in order. It returns the offset up to which the
// file is published, and the number of events before it. It skips lines that are not events, and events that the
// bus rejects as invalid.
func publishLines(
	ctx context.Context, b *bus.Bus, r io.Reader, log *slog.Logger,
) (published int, done int64, err error) {
	var waiting []schemas.Event
	publish := func(end int64) error {
		n, err := publishAll(ctx, b, waiting, log)
		if err == nil {
			waiting, done, published = nil, end, published+n
		}
		return err
	}
	add := func(e schemas.Event, end int64) error {
		if waiting = append(waiting, e); len(waiting) < MaxSampleBatch {
			return nil
		}
		return publish(end)
	}
	end, err := readLines(r, add, logSkipped(log))
	if err == nil {
		err = publish(end)
	}
	return published, done, err
}

// MaxSampleBatch is the maximum number of samples in a message.
const MaxSampleBatch = 100

// messageLength returns how many of the first events form one message: samples of one node, or one
// other event. It is 0 only without events.
func messageLength(events []schemas.Event) int {
	node := ""
	for i, e := range events[:min(len(events), MaxSampleBatch)] {
		s, isSample := e.(*schemas.Sample)
		switch {
		case i == 0 && !isSample:
			return 1
		case i == 0:
			node = s.Node
		case !isSample || s.Node != node:
			return i
		}
	}
	return min(len(events), MaxSampleBatch)
}

// publishAll publishes events in order, and returns their number. It drops events that the bus
// rejects as invalid.
func publishAll(
	ctx context.Context, b *bus.Bus, events []schemas.Event, log *slog.Logger,
) (published int, err error) {
	for len(events) > 0 {
		n := messageLength(events)
		err := publishMessage(ctx, b, events[:n])
		if n > 1 && errors.Is(err, schemas.ErrInvalid) { // one of them is: publish the first one alone
			n = 1
			err = publishMessage(ctx, b, events[:n])
		}
		switch {
		case errors.Is(err, schemas.ErrInvalid):
			log.Warn("invalid event dropped", "event", events[0].ID(), "error", err)
		case err != nil:
			return published, err
		default:
			published += n
		}
		events = events[n:]
	}
	return published, nil
}

func publishMessage(ctx context.Context, b *bus.Bus, events []schemas.Event) error {
	if len(events) == 1 {
		_, err := b.Publish(ctx, events[0])
		return err
	}
	samples := make([]*schemas.Sample, len(events))
	for i, e := range events {
		samples[i] = e.(*schemas.Sample)
	}
	_, err := b.PublishSamples(ctx, samples)
	return err
}
