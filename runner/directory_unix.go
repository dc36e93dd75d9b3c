//go:build unix

package runner

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory locks a directory of this user until the file is closed, also by a kill. It fails if
// another process holds the lock.
func lockDirectory(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var owner unix.Stat_t
	if err = unix.Fstat(fd, &owner); err == nil && int(owner.Uid) != os.Geteuid() {
		err = fmt.Errorf("%s belongs to user %d", path, owner.Uid)
	}
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
