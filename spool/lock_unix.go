//go:build unix

package spool

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file for this process until it is closed. It fails at once if another process
// holds the lock. The lock ends with the process, even after a crash.
func lock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) {
		lockErr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return err
	}
	return lockErr
}
