package spool

import (
	"os"

	"golang.org/x/sys/windows"
)

// noFollow has no meaning on Windows, where temporary files are in a directory of the user.
const noFollow = 0

func makeDir(dir string) error { return os.MkdirAll(dir, 0o700) }

// lockOffset is the offset of the locked byte. It is beyond the end of every spool file,
// because Windows denies other processes access to locked bytes.
const lockOffset = 1 << 30

// Lock locks a file until it is closed or the process ends. It fails if another process holds the lock.
func Lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
}
