package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// orphanPatience is how long an engine may still hold a data directory whose
// supervisor has died: its host gives it ten seconds to stop, and a loaded machine
// takes longer.
const orphanPatience = 30 * time.Second

// errLocked says that somebody else holds a lock.
var errLocked = errors.New("locked")

// dataLock is the right to work in one data directory. The two parts tell a
// living supervisor, whom a second one gives way to at once, from an engine
// that is still stopping because its supervisor was killed.
type dataLock struct {
	owner  *os.File // held by this process alone
	engine *os.File // handed on to the child, held until both have ended
}

// lockData takes both locks in the run directory, before anything else is
// written there.
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
	patience, cancel := context.WithTimeout(ctx, orphanPatience)
	defer cancel()
	if err := waitLock(patience, engine); err != nil {
		owner.Close()
		engine.Close()
		return nil, inUse(run, err)
	}
	return &dataLock{owner: owner, engine: engine}, nil
}

// release lets the next supervisor in. Closing a file ends its lock.
func (l *dataLock) release() error {
	return errors.Join(l.engine.Close(), l.owner.Close())
}

// inUse names the directory in a refusal.
func inUse(run string, err error) error {
	if errors.Is(err, errLocked) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", filepath.Dir(run), ErrInUse)
	}
	return fmt.Errorf("lock %s: %w", filepath.Dir(run), err)
}

// openLock opens a lock file, making it the first time.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

// waitLock waits until the lock is free, or ctx ends.
func waitLock(ctx context.Context, file *os.File) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := tryLock(file)
		if !errors.Is(err, errLocked) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
