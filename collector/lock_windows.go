package collector

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockPlace is a byte beyond every spool file: Windows keeps others from
// reading and writing what is locked.
const lockPlace = 1 << 30

// lock takes the file for this process until it is closed, or fails at once
// where another has it. It ends with the process, however that dies.
func lock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = raw.Control(func(fd uintptr) {
		locked = windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
			&windows.Overlapped{Offset: lockPlace})
	})
	if err != nil {
		return err
	}
	return locked
}
