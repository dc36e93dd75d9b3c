package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const directoryPrefix = "courier-run-"

// abandonedAge is the minimum age of a directory that may be removed. A newer one may not be locked yet.
const abandonedAge = time.Minute

// runDirectory is the directory of a run for its sockets, its control file and the Python files. Only this
// user can read it. It is locked while this process lives, so that a later run removes it after a kill.
type runDirectory struct {
	path string
	lock *os.File // nil where the system has no such lock
}

// newRunDirectory creates a directory in that for temporary files, and removes those of killed runs.
func newRunDirectory() (*runDirectory, error) {
	removeAbandoned(os.TempDir())
	path, err := os.MkdirTemp("", directoryPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a directory for the run: %w", err)
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock a directory for the run: %w", err), os.RemoveAll(path))
	}
	return &runDirectory{path, lock}, nil
}

// remove removes the directory; d may be nil.
func (d *runDirectory) remove() error {
	if d == nil {
		return nil
	}
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// removeAbandoned removes the directories of this user's runs that no process holds any more. What cannot
// be removed stays.
func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, directoryPrefix+"*")) // the pattern is valid
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		if f, err := lockDirectory(path); err == nil && f != nil {
			_ = os.RemoveAll(path)
			_ = f.Close()
		}
	}
}
