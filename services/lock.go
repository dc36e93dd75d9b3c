package services

import (
	"fmt"
	"os"
	"path/filepath"

	"courier/spool"
)

// LockDir creates a directory if it is absent, and locks it against other processes. The lock ends
// when release is called or the process ends.
func LockDir(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if err := spool.Lock(f); err != nil {
		_ = f.Close() // Nothing was written.
		return nil, fmt.Errorf("data directory %s is in use by another courier", dir)
	}
	return func() { _ = f.Close() }, nil // Closing releases the lock.
}
