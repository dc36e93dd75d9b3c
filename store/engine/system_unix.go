//go:build linux || darwin

package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// canSupervise says whether an engine can be run on this system at all.
const canSupervise = true

// tryLock takes the lock of an open file, or returns errLocked. The lock ends
// when the file is closed everywhere it was handed to.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

// detach gives the child a session of its own: SYSTEM SHUTDOWN signals the
// whole process group, and an interrupt typed at the terminal is for the
// supervisor, which then stops the child in order.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// killGroup ends the child and whatever runs in its session. It is no error if
// nothing does any more.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
