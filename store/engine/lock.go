package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// orphanTimeout is the time to wait for an engine whose supervisor has died. Its host allows ten
// seconds for the stop, and a busy machine takes longer.
const orphanTimeout = 30 * time.Second

// dataLock locks a data directory. One lock marks a running supervisor: a second supervisor exits.
// The other marks an engine that is still stopping after its supervisor was killed.
type dataLock struct {
	owner  *os.File // held by this process only
	engine *os.File // inherited by the child, held until both processes have ended
}

// lockData takes both locks in the run directory, before any other file is written there.
func lockData(ctx context.Context, run string) (*dataLock, error) {
	owner, err := openLock(filepath.Join(run, "owner"))
	if err != nil {
		return nil, err
	}
	if err := tryLock(owner); err != nil {
		owner.Close()
		return nil, inUse(run, err)
	}
	engine, err := openLock(filepath.Join(run, "lock"))
	if err != nil {
		owner.Close()
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	if err := waitLock(waiting, engine); err != nil {
		owner.Close()
		engine.Close()
		return nil, inUse(run, err)
	}
	return &dataLock{owner: owner, engine: engine}, nil
}

// inUse adds the data directory to an error, and ErrInUse if it is locked.
func inUse(run string, err error) error {
	if errors.Is(err, errLocked) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", filepath.Dir(run), ErrInUse)
	}
	return fmt.Errorf("lock %s: %w", filepath.Dir(run), err)
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

func waitLock(ctx context.Context, file *os.File) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := tryLock(file)
		if !errors.Is(err, errLocked) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
