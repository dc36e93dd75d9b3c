package services

import (
	"fmt"
	"os"
	"path/filepath"
)

// LockDir creates a directory if it is absent, and locks it against other processes: on Windows
// another process cannot remove an open file. The lock ends when release is called or the process
// ends.
func LockDir(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	name := filepath.Join(dir, "lock")
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("data directory %s is in use by another courier", dir)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil // Closing releases the lock.
}
