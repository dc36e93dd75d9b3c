package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"courier/bus"
	"courier/schemas"
)

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

	n, err := publishLines(ctx, b, f, log.With("spool", path))
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

// publishLines publishes the events of a spool file in order, and returns their number. It
// skips lines that are not events, and events that the bus rejects as invalid.
func publishLines(ctx context.Context, b *bus.Bus, r io.Reader, log *slog.Logger) (int, error) {
	published := 0
	publish := func(e schemas.Event, _ int64) error {
		_, err := b.Publish(ctx, e)
		if errors.Is(err, schemas.ErrInvalid) {
			log.Warn("invalid spooled event dropped", "event", e.ID(), "error", err)
			return nil
		}
		if err == nil {
			published++
		}
		return err
	}
	_, err := readLines(r, publish, logSkipped(log))
	return published, err
}
