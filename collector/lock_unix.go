//go:build unix

package collector

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process until it is closed, or fails at once
// where another has it. It ends with the process, however that dies.
func lock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	if err := raw.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		return err
	}
	return locked
}
