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
	if err := Lock(file); err != nil {
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
