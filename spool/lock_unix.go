//go:build unix

package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow makes the opening of a symbolic link fail, which another user may have planted.
const noFollow = unix.O_NOFOLLOW

// makeDir creates a directory for a spool. In the directory for temporary files, where its name can be
// guessed, it must be a directory of this user that nobody else can write to.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	inside, err := filepath.Rel(os.TempDir(), dir)
	if err != nil || strings.HasPrefix(inside, "..") {
		return nil // chosen by the user
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || ok && int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s does not belong to this user alone (mode %s): remove it, or give --spool-dir",
			dir, info.Mode())
	}
	return nil
}

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
