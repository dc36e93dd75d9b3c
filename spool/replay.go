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
	inDirs, err := RunFiles(dir)
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

// RunFiles returns the paths of the files of runs in a spool directory: those with the events of a known
// cluster, and those for the cluster at an address. The files of a node's samples are not among them.
func RunFiles(dir string) (paths []string, err error) {
	for _, prefix := range []string{clusterPrefix, addressPrefix} {
		found, err := filepath.Glob(filepath.Join(dir, prefix+"*", "*"+fileSuffix))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
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
	if Lock(f) != nil {
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
// file is published, and the number of published events before it. It skips lines that are not events,
// and events that the bus rejects as invalid.
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
