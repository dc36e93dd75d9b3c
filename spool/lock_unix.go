//go:build unix

package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow is a flag with which opening a symbolic link fails. Another user may have created the link.
const noFollow = unix.O_NOFOLLOW

// makeDir creates a directory for a spool. Other users can guess its name in the directory for temporary
// files. There it must belong to this user, and no other user may write to it.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	inside, err := filepath.Rel(os.TempDir(), dir)
	if err != nil || !filepath.IsLocal(inside) {
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

// Lock locks a file until it is closed or the process ends. It fails if another process holds the lock.
func Lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
