package collector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"courier/bus"
	"courier/schemas"
)

// maxSpoolBytes bounds the file of one run: some 90,000 epochs.
const maxSpoolBytes = 64 << 20

// spoolSuffix ends the names of spool files.
const spoolSuffix = ".jsonl"

// DefaultSpoolDir returns the folder of events that could not be published:
// below the user's cache, or below the folder for temporary files.
func DefaultSpoolDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "courier", "spool")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("courier-spool-%d", os.Getuid()))
}

// spool keeps the events of one run that could not be published, in a file that
// only grows and outlives the process. The file is made with the first event
// and locked while the run lives, so that nobody else replays it.
type spool struct {
	path string

	mu      sync.Mutex // held for a write or less, never while something is published
	file    *os.File
	size    int64 // bytes of the file
	taken   int64 // bytes of it that are published
	pending int   // events that are not
}

// spooled is one line of the file.
type spooled struct {
	Subject string          `json:"subject"`
	Event   json.RawMessage `json:"event"`
}

func newSpool(dir, job string, run uint32) *spool {
	return &spool{path: filepath.Join(dir, fmt.Sprintf("%s-%d%s", job, run, spoolSuffix))}
}

// append writes an event to the end of the file. A full file takes only the
// job's end; the error is ErrSpoolFull then.
func (s *spool) append(e schemas.Event) error {
	line, err := encodeSpooled(e)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	if _, last := e.(*schemas.Ended); !last && s.size+int64(len(line)) > maxSpoolBytes {
		return fmt.Errorf("keep %s in %s: %w", e.Subject(), s.path, ErrSpoolFull)
	}
	if n, err := s.file.Write(line); err != nil {
		if torn := s.file.Truncate(s.size); torn != nil {
			end, _ := s.file.Write([]byte("\n")) // of a part of this event; readers skip it
			s.size += int64(n + end)
		}
		return fmt.Errorf("keep %s: %w", e.Subject(), err)
	}
	s.size += int64(len(line))
	s.pending++
	return nil
}

func encodeSpooled(e schemas.Event) ([]byte, error) {
	body, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(spooled{Subject: e.Subject(), Event: body})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Subject(), err)
	}
	return append(line, '\n'), nil
}

// open makes and locks the file, once.
func (s *spool) open() error {
	if s.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("make the spool: %w", err)
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the spool: %w", err)
	}
	if err := lock(f); err != nil {
		return errors.Join(fmt.Errorf("lock the spool %s: %w", s.path, err), f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("open the spool: %w", err), f.Close())
	}
	s.file, s.size = f, info.Size()
	if s.size > 0 { // an earlier process left events, and perhaps a torn line
		n, err := f.WriteString("\n")
		s.size, s.pending = s.size+int64(n), 1
		return err
	}
	return nil
}

// count returns how many events wait.
func (s *spool) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// replay publishes what waits, in order, and empties the file when all of it
// was taken. It stops at the first error; what was published before is published
// again later, and dropped by its message ID. Only one goroutine may replay.
func (s *spool) replay(ctx context.Context, b *bus.Bus, log *slog.Logger) error {
	for {
		s.mu.Lock()
		from, until, events := s.taken, s.size, s.pending
		s.mu.Unlock()
		if events == 0 {
			return nil
		}
		if _, err := publishSpool(ctx, b, io.NewSectionReader(s.file, from, until-from), log.With("spool", s.path)); err != nil {
			return err
		}
		if err := s.forget(until, events); err != nil {
			return err
		}
	}
}

// forget notes that the events before a place of the file are published.
func (s *spool) forget(until int64, events int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken, s.pending = until, s.pending-events
	if s.taken < s.size {
		return nil
	}
	if err := s.file.Truncate(0); err != nil {
		return fmt.Errorf("empty the spool: %w", err)
	}
	s.size, s.taken = 0, 0
	return nil
}

// close unlocks the file and removes it if nothing waits.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if err == nil && s.pending == 0 {
		err = os.Remove(s.path)
	}
	return err
}

// ReplaySpool publishes what earlier runs left in the folder, each run's events
// in order and with their own times, and removes the files whose events were
// all taken. Files of runs that still live are left to them. It returns how many
// events were published, copies that NATS dropped included.
func ReplaySpool(ctx context.Context, dir string, b *bus.Bus, log *slog.Logger) (int, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+spoolSuffix))
	if err != nil {
		return 0, fmt.Errorf("list the spool %s: %w", dir, err)
	}
	total := 0
	var failures []error
	for _, path := range paths {
		n, err := replayFile(ctx, path, b, log)
		total += n
		if err == nil {
			continue
		}
		failures = append(failures, fmt.Errorf("replay %s: %w", path, err))
		if ctx.Err() != nil || errors.Is(err, schemas.ErrUnavailable) {
			break // the others would fail alike
		}
	}
	return total, errors.Join(failures...)
}

func replayFile(ctx context.Context, path string, b *bus.Bus, log *slog.Logger) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // somebody else was faster
	}
	if err != nil {
		return 0, err
	}
	if lock(f) != nil {
		return 0, f.Close() // its run lives
	}
	n, err := publishSpool(ctx, b, f, log.With("spool", path))
	if err == nil {
		err = f.Truncate(0) // whoever opened it before it is removed finds nothing
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return n, err
	}
	if n > 0 {
		log.Info("spool replayed", "path", path, "events", n)
	}
	return n, os.Remove(path)
}

// publishSpool publishes the events of a spool file in order and returns how
// many it did. What cannot be understood, as a line torn by a crash, is skipped.
func publishSpool(ctx context.Context, b *bus.Bus, r io.Reader, log *slog.Logger) (int, error) {
	published := 0
	err := readSpool(r, func(e schemas.Event) error {
		_, err := b.Publish(ctx, e)
		if errors.Is(err, schemas.ErrInvalid) {
			log.Warn("spooled event refused", "event", e.ID(), "error", err)
			return nil
		}
		if err == nil {
			published++
		}
		return err
	}, func(line []byte, err error) {
		log.Warn("spooled line is not an event", "line", quotable(line), "error", err)
	})
	return published, err
}

// readSpool calls take for each event of a spool file, in order and once for
// each identity, and torn for a line that is none. An error of take ends it.
func readSpool(r io.Reader, take func(schemas.Event) error, torn func(line []byte, err error)) error {
	buffer := bufio.NewReaderSize(r, 2*schemas.MaxMessageBytes)
	known := map[string]bool{}
	for {
		line, err := buffer.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read the spool: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			e, err := decodeSpooled(line)
			if err != nil {
				torn(line, err)
			} else if !known[e.ID()] {
				known[e.ID()] = true
				if err := take(e); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

func decodeSpooled(line []byte) (schemas.Event, error) {
	var l spooled
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	return schemas.Parse(l.Subject, l.Event)
}
